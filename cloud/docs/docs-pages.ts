import { testCards } from '../../protocol/model/test-cards.ts'
import type { PageAssets } from '../../protocol/page-assets.ts'
import type { Description } from './description.ts'
import { escapeHtml } from '../platform/http/plain-page.ts'
import { errorGuide } from './error-guide.ts'
import { limitsTable } from './limits-table.ts'
import { cutTo, slugOf, subjectsOf, type Subject } from './subjects.ts'

/** A page or a data file of the documentation. */
export interface DocsFile {
  type: 'text/html; charset=utf-8' | 'application/json'
  text: string
  /** The page makes styles while it runs: its policy needs a nonce. */
  needsNonce: boolean
}

interface Guide {
  group: string
  title: string
  slug: string
  html: string
}

const html = (text: string, needsNonce = false): DocsFile => ({
  type: 'text/html; charset=utf-8',
  text,
  needsNonce,
})
const json = (value: unknown): DocsFile => ({
  type: 'application/json',
  text: JSON.stringify(value),
  needsNonce: false,
})

/**
 * The documentation as plain pages: a start page, a page for each guide, and for each subject of the API a reference in which
 * calls can be tried. Each is made when it is first asked for.
 */
export class DocsPages {
  readonly #assets: PageAssets
  readonly #describe: () => Description
  readonly #made = new Map<string, DocsFile | undefined>()
  #guides: readonly Guide[] | undefined
  #subjects: readonly Subject[] | undefined

  constructor(assets: PageAssets, describe: () => Description) {
    this.#assets = assets
    this.#describe = describe
  }

  /** The page or file with a name; an empty name is the start page. Undefined if there is none. */
  find(name: string): DocsFile | undefined {
    if (!this.#made.has(name)) {
      const made = this.#make(name)
      if (made === undefined) return undefined
      this.#made.set(name, made)
    }
    return this.#made.get(name)
  }

  #make(name: string): DocsFile | undefined {
    if (name === '') return this.#home()
    if (name === 'search.json') return json(this.#places())
    const guide = this.#listGuides().find(({ slug }) => slug === name)
    if (guide) return this.#plain(name, guide.title, `<h1>${escapeHtml(guide.title)}</h1>\n${guide.html}`)
    const subject = this.#listSubjects().find(({ slug }) => name === `reference-${slug}`)
    if (subject) return this.#reference(subject)
    const described = this.#listSubjects().find(({ slug }) => name === `description-${slug}.json`)
    return described && json(cutTo(this.#describe(), described.name))
  }

  #home(): DocsFile | undefined {
    const subjects = this.#listSubjects()
    const first = this.#listGuides()[0]
    const begin = first
      ? `<p>Begin with <a href="./${first.slug}"><strong>${escapeHtml(first.title)}</strong></a>.</p>`
      : ''
    const guides = this.#grouped((own) =>
      own.map(({ slug, title }) => `<li><a href="./${slug}">${escapeHtml(title)}</a></li>`),
    )
    const rows = subjects.map(
      ({ name, slug, operations }) =>
        `<tr><td><a href="./reference-${slug}">${escapeHtml(name)}</a></td><td>${operations.map(({ summary }) => escapeHtml(summary)).join('. ')}.</td></tr>`,
    )
    return this.#plain(
      '',
      'Larder: guides and reference',
      `<h1>Larder: guides and reference</h1>${begin}
${htmlOf(this.#describe().info.description)}
${guides}
<p>The whole description is at <a href="../openapi.json" data-openapi>openapi.json</a>.</p>
<h2>Reference</h2><table><thead><tr><th>Subject</th><th>Calls</th></tr></thead><tbody>${rows.join('')}</tbody></table>`,
    )
  }

  /** Lists of the guides, one for each group of readers. */
  #grouped(items: (guides: readonly Guide[]) => string[]): string {
    const groups = [...new Set(this.#listGuides().map(({ group }) => group))]
    return groups
      .map((name) => {
        const own = this.#listGuides().filter(({ group }) => group === name)
        return `<h2>${escapeHtml(name)}</h2><ul>${items(own).join('')}</ul>`
      })
      .join('')
  }

  /** The frame of plain pages; where the build has none there is no page. */
  #plain(name: string, title: string, content: string): DocsFile | undefined {
    const frame = this.#assets.text?.('index.html')
    if (frame === undefined) return undefined
    return html(
      this.#headed(frame, title)
        .replace('<!--nav-->', () => this.#nav(name))
        .replace('<!--content-->', () => `<article class="markdown">${content}</article>`),
    )
  }

  #reference({ name, slug, audience, operations }: Subject): DocsFile | undefined {
    const frame = this.#assets.text?.('reference.html')
    if (frame === undefined) return undefined
    const list = operations.map(
      ({ method, path, summary }) =>
        `<li><code>${method.toUpperCase()} ${escapeHtml(path)}</code> ${escapeHtml(summary)}</li>`,
    )
    return html(
      this.#headed(frame, `${name}: ${audience}`)
        .replace('<head>', `<head><meta name="subject" content="${slug}" />`)
        .replace('<!--where-->', `<span>${escapeHtml(`${audience}: ${name}`)}</span>`)
        // It can be read while the reference loads, and without scripts.
        .replace(
          '<!--content-->',
          () => `<main class="loading markdown"><h1>${escapeHtml(name)}</h1><ul>${list.join('')}</ul></main>`,
        ),
      true,
    )
  }

  #headed(frame: string, title: string): string {
    const demo = '/demo/credentials' in this.#describe().paths ? '<meta name="demo" content="yes" />' : ''
    return frame
      .replace(/<title>[^<]*<\/title>/, `<title>${escapeHtml(title)}</title>`)
      .replace('</title>', `</title>${demo}`)
  }

  #nav(current: string): string {
    const link = (slug: string, title: string): string =>
      `<li><a href="./${slug}"${slug === current ? ' aria-current="page"' : ''}>${escapeHtml(title)}</a></li>`
    const groups = this.#grouped((own) => own.map(({ slug, title }) => link(slug, title)))
    const audiences = [...new Set(this.#listSubjects().map(({ audience }) => audience))].map((audience) => {
      const own = this.#listSubjects().filter((subject) => subject.audience === audience)
      return `<h2>${escapeHtml(audience)}</h2><ul>${own.map(({ slug, name }) => link(`reference-${slug}`, name)).join('')}</ul>`
    })
    return `<div tabindex="0" role="group" aria-label="Pages">${groups}${audiences.join('')}</div>`
  }

  #listSubjects(): readonly Subject[] {
    return (this.#subjects ??= subjectsOf(this.#describe()))
  }

  #listGuides(): readonly Guide[] {
    if (this.#guides) return this.#guides
    const rendered = JSON.parse(this.#assets.text?.('guides.json') ?? '[]') as {
      group: string
      title: string
      html: string
    }[]
    const tables: Readonly<Record<string, () => string>> = {
      errors: () => htmlOf(errorGuide()),
      limits: () => htmlOf(limitsTable(this.#describe())),
      cards: () => htmlOf(cardsTable()),
    }
    const values: Readonly<Record<string, string>> = {
      base_url: 'https://SERVICE',
      api_key: 'lk_…',
      simulator_url: 'http://127.0.0.1:8082',
    }
    this.#guides = rendered.map(({ group, title, html: text }) => ({
      group,
      title,
      slug: `guide-${slugOf(title)}`,
      html: text
        .replaceAll(/<p>\{\{(\w+)\}\}<\/p>/g, (whole, word: string) => tables[word]?.() ?? whole)
        .replaceAll(/\{\{(\w+)\}\}/g, (whole, word: string) =>
          word in values ? `<span data-fill="${word}">${values[word]}</span>` : whole,
        )
        .replaceAll(/<h([23])>(.*?)<\/h\1>/g, (_, level: string, words: string) => {
          const id = slugOf(words.replaceAll(/<[^>]*>/g, ''))
          return `<h${level} id="${id}">${words}</h${level}>`
        })
        .replaceAll(/href="#tag\/([^"/]+)([^"]*)"/g, (_, tag: string, rest: string) =>
          tag.startsWith('guide-') ? `href="./${tag}"` : `href="./reference-${tag}#tag/${tag}${rest}"`,
        ),
    }))
    return this.#guides
  }

  /** Places that the search knows. */
  #places() {
    const guides = this.#listGuides().map(({ group, title, slug, html: text }) => ({
      title,
      url: slug,
      kind: group,
      words: text
        .replaceAll(/<[^>]*>/g, ' ')
        .replaceAll(/\s+/g, ' ')
        .toLowerCase(),
    }))
    const operations = this.#listSubjects().flatMap((subject) =>
      subject.operations.map(({ method, path, summary, words }) => ({
        title: `${method.toUpperCase()} ${path}: ${summary}`,
        url: `reference-${subject.slug}#tag/${subject.slug}/${method.toUpperCase()}${path}`,
        kind: `${subject.audience}, ${subject.name}`,
        words,
      })),
    )
    return [...guides, ...operations]
  }
}

const cardsTable = (): string =>
  [
    '| `payment_method_id` | Does |',
    '|---|---|',
    ...Object.entries(testCards).map(([name, words]) => `| \`${name}\` | ${words} |`),
  ].join('\n')

/** Code and bold words of a line of Markdown. */
const inline = (text: string): string =>
  escapeHtml(text)
    .replaceAll(/`([^`]+)`/g, '<code>$1</code>')
    .replaceAll(/\*\*([^*]+)\*\*/g, '<strong>$1</strong>')

/** HTML of headings, tables, lists and paragraphs: what this service writes itself in Markdown. */
export function htmlOf(markdown: string): string {
  return markdown
    .split(/\n{2,}/)
    .map((block) => {
      const heading = /^(#{2,4}) (.*)$/.exec(block)
      if (heading) return `<h${heading[1]!.length}>${inline(heading[2]!)}</h${heading[1]!.length}>`
      if (block.startsWith('- ')) return listOf(block.split('\n'))
      if (!block.startsWith('|')) return `<p>${inline(block)}</p>`
      const [head = [], , ...rows] = block.split('\n').map(cellsOf)
      const line = (cells: readonly string[], tag: string): string =>
        `<tr>${cells.map((cell) => `<${tag}>${inline(cell)}</${tag}>`).join('')}</tr>`
      const body = rows.map((cells) => line(cells, 'td')).join('')
      return `<table><thead>${line(head, 'th')}</thead><tbody>${body}</tbody></table>`
    })
    .join('\n')
}

/** A list. Inner items are indented by four spaces. */
function listOf(lines: readonly string[]): string {
  const items = lines.map((line) => ({
    isInner: line.startsWith('    '),
    text: inline(line.replace(/^\s*- /, '')),
  }))
  let html = ''
  for (const [index, { isInner, text }] of items.entries()) {
    const wasInner = items[index - 1]?.isInner ?? false
    html += isInner
      ? `${wasInner ? '</li>' : '<ul>'}<li>${text}`
      : `${wasInner ? '</li></ul>' : ''}${index > 0 ? '</li>' : ''}<li>${text}`
  }
  return `<ul>${html}${items.at(-1)?.isInner ? '</li></ul>' : ''}</li></ul>`
}

const cellsOf = (line: string): string[] =>
  line
    .replace(/^\||\|\s*$/g, '')
    .split(/(?<!\\)\|/)
    .map((cell) => cell.trim().replaceAll('\\|', '|'))
