import { docsFolder } from './folder.ts'
import { addSearch } from './search.ts'

/**
 * The reference creates styles at run time, as elements and as attributes, and the page's policy refuses both. Styles
 * that a script creates here get the page's nonce. Styles in a text (a guide, a description) get none.
 */
const { nonce = '' } = document.querySelector<HTMLMetaElement>('meta[name=style-nonce]') ?? {}

const create = document.createElement.bind(document)
document.createElement = (name: string, options?: ElementCreationOptions): HTMLElement => {
  const element = create(name, options)
  if (element instanceof HTMLStyleElement) element.nonce = nonce
  return element
}

// oxlint-disable-next-line typescript/unbound-method -- it is called with its element
const { setAttribute } = Element.prototype
Element.prototype.setAttribute = function (this: Element, name: string, value: string): void {
  if (name === 'style' && (this instanceof HTMLElement || this instanceof SVGElement))
    this.style.cssText = value
  else setAttribute.call(this, name, value)
}

addSearch(docsFolder)
try {
  // The reference creates styles when it is loaded, so the code that marks them must run first.
  const { show } = await import('./show.ts')
  await show(() => `reader-${crypto.getRandomValues(new Uint32Array(3)).join('-')}`)
} catch (error) {
  const words = document.createElement('p')
  words.role = 'alert'
  words.textContent = `The documentation could not be shown: ${String(error)}`
  document.querySelector('#reference')!.replaceChildren(words)
}
