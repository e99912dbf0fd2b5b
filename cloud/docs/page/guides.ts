import changes from '../../../protocol/contract/CHANGELOG.md?raw'
import { errorGuide } from './error-guide.ts'
import { testCards } from '../../../protocol/model/test-cards.ts'
import type { Description, Guide } from './document.ts'
import { limitsTable } from './limits-table.ts'
import orders from './orders.svg'

/** Pages for callers, by name. Each begins with its title. */
const guides = import.meta.glob<string>('../guides/*.md', { query: '?raw', import: 'default', eager: true })
/** Pages for operators, by name. */
const operating = import.meta.glob<string>('../operating/*.md', {
  query: '?raw',
  import: 'default',
  eager: true,
})

/** The pages of both groups, in the order of their names. */
export function guidesFor(
  description: Description,
  known: { baseUrl: string; apiKey: string | undefined },
): Guide[] {
  const words: Record<string, string> = {
    base_url: known.baseUrl,
    api_key: known.apiKey ?? 'lk_…',
    orders_picture: orders,
    errors: errorGuide(),
    limits: limitsTable(description),
    cards: cardsTable(),
    simulator_url: 'http://127.0.0.1:8082',
    changes: changes.replace(/^# .*\n/, '').replaceAll(/^#/gm, '##'),
  }
  const pagesOf = (group: Guide['group'], files: Readonly<Record<string, string>>): Guide[] =>
    Object.keys(files)
      .toSorted()
      .map((name) => {
        const text = files[name]!.replaceAll(/\{\{(\w+)\}\}/g, (_, word: string) => words[word]!)
        const [first = ''] = text.split('\n', 1)
        return { group, title: first.replace(/^# /, ''), text: text.slice(first.length).trim() }
      })
  return [...pagesOf('Guides', guides), ...pagesOf('Operating', operating)]
}

const cardsTable = (): string =>
  [
    '| `payment_method_id` | Does |',
    '|---|---|',
    ...Object.entries(testCards).map(([name, words]) => `| \`${name}\` | ${words} |`),
  ].join('\n')
