/** Tables as CSV. `cloud/platform/csv.ts` writes them. */

export type Row = Readonly<Record<string, string>>

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
