import changes from '../../../protocol/contract/CHANGELOG.md?raw'
import { errorGuide } from './error-guide.ts'
import { testCards } from '../../../protocol/model/test-cards.ts'
import type { Description, Guide } from './document.ts'
import { limitsTable } from './limits-table.ts'
import orders from './orders.svg'

/** By name; each begins with its title. */
const files = import.meta.glob<string>('../guides/*.md', { query: '?raw', import: 'default', eager: true })

/** In the order in which they are read, as the names say. */
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
  return Object.keys(files)
    .toSorted()
    .map((name) => {
      const text = files[name]!.replaceAll(/\{\{(\w+)\}\}/g, (_, word: string) => words[word]!)
      const [first = ''] = text.split('\n', 1)
      return { title: first.replace(/^# /, ''), text: text.slice(first.length).trim() }
    })
}

const cardsTable = (): string =>
  [
    '| `payment_method_id` | Does |',
    '|---|---|',
    ...Object.entries(testCards).map(([name, words]) => `| \`${name}\` | ${words} |`),
  ].join('\n')
