/** Columns wider than this are cut. */
const MAX_CELL = 48

const cellOf = (value: unknown): string => {
  if (value === null || value === undefined) return '-'
  return typeof value === 'string' ? value : JSON.stringify(value)
}

const cut = (text: string, width: number): string =>
  text.length <= width ? text : `${text.slice(0, width - 1)}…`

/**
 * Output of a command for people: a list as a table, an object as a line for each field. A list that does not fit into
 * `columns` is printed as one object after the other.
 */
export function tableOf(output: unknown, columns: number): string {
  if (!Array.isArray(output)) return fieldsOf(output)
  if (output.length === 0) return 'None.\n'
  const rows = output as Record<string, unknown>[]
  if (rows.some((row) => typeof row !== 'object' || row === null))
    return rows.map((row) => `${cellOf(row)}\n`).join('')
  const names = [...new Set(rows.flatMap((row) => Object.keys(row)))]
  const cells = rows.map((row) => names.map((name) => cut(cellOf(row[name]), MAX_CELL)))
  const widths = names.map((name, index) => Math.max(name.length, ...cells.map((row) => row[index]!.length)))
  const width = widths.reduce((sum, each) => sum + each + 2, -2)
  if (width > columns) return rows.map(fieldsOf).join('\n')
  return [names, ...cells]
    .map(
      (row) =>
        `${row
          .map((cell, index) => cell.padEnd(widths[index]!))
          .join('  ')
          .trimEnd()}\n`,
    )
    .join('')
}

function fieldsOf(output: unknown): string {
  if (typeof output !== 'object' || output === null) return `${cellOf(output)}\n`
  const width = Math.max(0, ...Object.keys(output).map((name) => name.length))
  return Object.entries(output)
    .map(([name, value]) => `${name.padEnd(width)}  ${cellOf(value)}\n`)
    .join('')
}
