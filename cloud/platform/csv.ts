/** A value of a table in CSV; null is an empty cell, an object is JSON. */
type Cell = string | number | boolean | object | null

/** Spreadsheets read a text with this beginning as a formula. */
const FORMULA = /^[=+\-@\t\r]/

function cellText(cell: Cell): string {
  if (cell === null) return ''
  if (typeof cell === 'number' || typeof cell === 'boolean') return String(cell)
  const text = typeof cell === 'string' ? cell : JSON.stringify(cell)
  const safe = FORMULA.test(text) ? `'${text}` : text
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe
}

/** A line of CSV (RFC 4180). Text cells that a spreadsheet would take for a formula get a leading apostrophe. */
export const csvLine = (cells: readonly Cell[]): string => `${cells.map(cellText).join(',')}\r\n`

/** The lines of some rows. */
export const csvLines = <Row extends object>(
  columns: readonly (keyof Row & string)[],
  rows: readonly Row[],
): string => rows.map((row) => csvLine(columns.map((column) => row[column] as Cell))).join('')
