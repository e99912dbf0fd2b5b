import { createHash } from 'node:crypto'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/** A guide as the cloud serves it: HTML in which only values of the running service are left as `{{name}}`. */
export interface RenderedGuide {
  /** Its readers: callers of the API, or operators. */
  group: 'Guides' | 'Operating'
  title: string
  html: string
}

/**
 * Renders the guides of the API into `guides.json`, in the order of their names. Returns the file name of the
 * picture that one guide shows.
 */
export async function renderGuides(root: string, folder: string): Promise<string> {
  const { micromark } = await import('micromark')
  const { gfm, gfmHtml } = await import('micromark-extension-gfm')
  const picture = readFileSync(join(root, 'cloud/docs/page/orders.svg'))
  const pictureName = `orders-${createHash('sha256').update(picture).digest('hex').slice(0, 8)}.svg`
  writeFileSync(join(folder, pictureName), picture)
  const changes = readFileSync(join(root, 'protocol/contract/CHANGELOG.md'), 'utf8')
  const words: Readonly<Record<string, string>> = {
    orders_picture: `./${pictureName}`,
    changes: changes.replace(/^# .*\n/, '').replaceAll(/^#/gm, '##'),
  }
  const pagesOf = (group: RenderedGuide['group'], place: string): RenderedGuide[] =>
    readdirSync(join(root, place))
      .toSorted()
      .map((name) => {
        const text = readFileSync(join(root, place, name), 'utf8').replaceAll(
          /\{\{(\w+)\}\}/g,
          (whole, word: string) => words[word] ?? whole,
        )
        const [first = ''] = text.split('\n', 1)
        const html = micromark(text.slice(first.length), { extensions: [gfm()], htmlExtensions: [gfmHtml()] })
        return { group, title: first.replace(/^# /, ''), html }
      })
  const guides = [...pagesOf('Guides', 'cloud/docs/guides'), ...pagesOf('Operating', 'cloud/docs/operating')]
  writeFileSync(join(folder, 'guides.json'), JSON.stringify(guides))
  return pictureName
}
