/** Tables as CSV (RFC 4180), as the reports of the service write them. */

export type Row = Readonly<Record<string, string>>

/** Text that a spreadsheet would take for a formula gets an apostrophe. */
function cellOf(value: string | number | boolean): string {
  const text = typeof value === 'string' ? value.replace(/^[=+\-@\t\r]/, "'$&") : String(value)
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text
}

export const csvOf = <Name extends string>(
  columns: readonly Name[],
  rows: readonly Readonly<Record<Name, string | number | boolean>>[],
): string =>
  [columns.join(','), ...rows.map((row) => columns.map((name) => cellOf(row[name])).join(','))]
    .map((line) => `${line}\r\n`)
    .join('')

/** The rows of a table by the names in its first line. Commas and semicolons separate cells. */
export function rowsOf(text: string): Row[] {
  const separator = /^[^\n,]*;/.test(text) ? ';' : ','
  const cell = new RegExp(`("(?:[^"]|"")*"|[^${separator}\\r\\n"]*)(${separator}|\\r?\\n|$)`, 'gy')
  const lines: string[][] = [[]]
  for (const [whole, content = '', end] of text.replace(/^\uFEFF/, '').matchAll(cell)) {
    if (whole === '') break
    lines.at(-1)!.push(
      content
        .replace(/^"|"$/g, '')
        .replaceAll('""', '"')
        .replace(/^'(?=[=+\-@])/, ''),
    )
    if (end !== separator) lines.push([])
  }
  const [names = [], ...rows] = lines.filter((line) => line.some((text) => text !== ''))
  return rows.map((row) => Object.fromEntries(names.map((name, index) => [name.trim(), row[index] ?? ''])))
}
