/** Tables as CSV. `cloud/platform/csv.ts` writes them. */

export type Row = Readonly<Record<string, string>>

/**
 * The rows of a table by the names in its first line. Commas and semicolons separate cells. Throws if a line is broken: the
 * cells of this line and of all later lines would be unknown.
 */
export function rowsOf(given: string): Row[] {
  const text = given.replace(/^\uFEFF/, '')
  const separator = /^[^\n,]*;/.test(text) ? ';' : ','
  const cell = new RegExp(`("(?:[^"]|"")*"|[^${separator}\\r\\n"]*)(${separator}|\\r?\\n|$)`, 'gy')
  const lines: string[][] = [[]]
  let length = 0
  for (const [whole, content = '', end] of text.matchAll(cell)) {
    if (whole === '') break
    length += whole.length
    lines.at(-1)!.push(
      content
        .replace(/^"|"$/g, '')
        .replaceAll('""', '"')
        .replace(/^'(?=[=+\-@])/, ''),
    )
    if (end !== separator) lines.push([])
  }
  if (length < text.length) {
    const line = text.slice(0, length).split('\n').length
    throw new Error(
      `Line ${line}: a quotation mark is not closed, or stands inside a cell without quotation marks.`,
    )
  }
  const [names = [], ...rows] = lines.filter((line) => line.some((text) => text !== ''))
  return rows.map((row) => Object.fromEntries(names.map((name, index) => [name.trim(), row[index] ?? ''])))
}
