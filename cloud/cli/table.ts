import { styleText } from 'node:util'

/** Columns wider than this are cut. */
const MAX_CELL = 48

type Style = Parameters<typeof styleText>[0]

/** Status words and their colours. */
const styles: readonly (readonly [RegExp, Style])[] = [
  [/^(critical|fault|failed|offline|retired|disabled|disconnected|unknown|revoked|FAILED|TIMED_OUT)$/, 'red'],
  [/^(warning|maintenance|paused|pending|degraded|inactive|open|requires_action|unpaid)$/, 'yellow'],
  [/^(active|healthy|enabled|connected|delivered|completed|succeeded|true|COMPLETED|READY)$/, 'green'],
]

/** The caller has decided whether the terminal has colours. */
const paint = (style: Style, text: string): string => styleText(style, text, { validateStream: false })

const styleOf = (text: string): Style | undefined => styles.find(([pattern]) => pattern.test(text))?.[1]

const asInJson = (one: string): string => `\\u${one.charCodeAt(0).toString(16).padStart(4, '0')}`

/** A terminal executes control characters, so a text shows them as JSON does. */
const escaped = (text: string): string => text.replaceAll(/\p{Cc}/gu, asInJson)

/** Lines for a terminal: every control character but line ends and tabs is shown as in JSON. */
export const escapedLines = (text: string): string => text.replaceAll(/(?!\r?\n|\t)\p{Cc}/gu, asInJson)

const cellOf = (value: unknown): string => {
  if (value === null || value === undefined) return '-'
  return escaped(typeof value === 'string' ? value : JSON.stringify(value))
}

const cut = (text: string, width: number): string =>
  text.length <= width ? text : `${text.slice(0, width - 1)}…`

const coloured = (style: Style | undefined, text: string, hasColours: boolean): string =>
  hasColours && style !== undefined && text !== '' ? paint(style, text) : text

/** Headings of a help text, in bold. */
export const withHeadings = (help: string): string =>
  help.replaceAll(/^(Usage|Settings|Limits)\b.*|^[A-Z][^.\n]*:$/gm, (heading) => paint('bold', heading))

/**
 * Output of a command for people: a list as a table, an object as a line for each field. A list that does not
 * fit into `columns` is printed as one object after the other. A page of a list is printed as its table, then
 * its other fields.
 */
export function tableOf(output: unknown, columns: number, hasColours = false): string {
  const page = pageOf(output)
  if (page !== undefined) {
    const rest = Object.keys(page.rest).length === 0 ? '' : `\n${fieldsOf(page.rest, hasColours)}`
    return tableOf(page.rows, columns, hasColours) + rest
  }
  if (!Array.isArray(output)) return fieldsOf(output, hasColours)
  if (output.length === 0) return 'None.\n'
  const rows = output as Record<string, unknown>[]
  if (rows.some((row) => typeof row !== 'object' || row === null))
    return rows.map((row) => `${cellOf(row)}\n`).join('')
  const names = [...new Set(rows.flatMap((row) => Object.keys(row)))]
  const cells = rows.map((row) => names.map((name) => cut(cellOf(row[name]), MAX_CELL)))
  const widths = names.map((name, index) => Math.max(name.length, ...cells.map((row) => row[index]!.length)))
  const width = widths.reduce((sum, each) => sum + each + 2, -2)
  if (width > columns) return rows.map((row) => fieldsOf(row, hasColours)).join('\n')
  const line = (row: readonly string[], style: (cell: string) => Style | undefined): string => {
    const last = row.findLastIndex((cell) => cell !== '')
    const padded = row.map((cell, index) => {
      const space = index === last ? '' : ' '.repeat(widths[index]! - cell.length)
      return coloured(style(cell), cell, hasColours) + space
    })
    return `${padded.join('  ').trimEnd()}\n`
  }
  return [line(names, () => 'bold'), ...cells.map((row) => line(row, styleOf))].join('')
}

/** The rows of one page of a list in the API's answer, and the other fields of that answer. */
function pageOf(output: unknown): { rows: unknown[]; rest: Record<string, unknown> } | undefined {
  if (typeof output !== 'object' || output === null || Array.isArray(output)) return undefined
  const lists = Object.entries(output).filter(([, value]) => Array.isArray(value))
  const [list] = lists
  if (lists.length !== 1 || !['data', 'items', 'orders', 'logs', 'hubs'].includes(list![0])) return undefined
  const { [list![0]]: rows, ...rest } = output as Record<string, unknown>
  return { rows: rows as unknown[], rest }
}

function fieldsOf(output: unknown, hasColours: boolean): string {
  if (typeof output !== 'object' || output === null) return `${cellOf(output)}\n`
  const width = Math.max(0, ...Object.keys(output).map((name) => name.length))
  return Object.entries(output)
    .map(([name, value]) => {
      const cell = cellOf(value)
      return `${coloured('bold', name, hasColours)}${' '.repeat(width - name.length)}  ${coloured(styleOf(cell), cell, hasColours)}\n`
    })
    .join('')
}
