import './own-styles.ts'
import { docsFolder } from './folder.ts'
import { addSearch } from './search.ts'

addSearch(docsFolder)
try {
  // The reference makes styles as soon as it is loaded: what marks them comes first.
  const { show } = await import('./show.ts')
  await show(() => `reader-${crypto.getRandomValues(new Uint32Array(3)).join('-')}`)
} catch (error) {
  const words = document.createElement('p')
  words.role = 'alert'
  words.textContent = `The documentation could not be shown: ${String(error)}`
  document.querySelector('#reference')!.replaceChildren(words)
}
