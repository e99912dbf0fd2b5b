/** A value of a table in CSV; null is an empty cell. */
type Cell = string | number | boolean | null

/** Spreadsheets read a text with this beginning as a formula. */
const FORMULA = /^[=+\-@\t\r]/

function cellText(cell: Cell): string {
  if (typeof cell !== 'string') return cell === null ? '' : String(cell)
  const safe = FORMULA.test(cell) ? `'${cell}` : cell
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe
}

/** A line of CSV (RFC 4180). Text cells that a spreadsheet would take for a formula get a leading apostrophe. */
export const csvLine = (cells: readonly Cell[]): string => `${cells.map(cellText).join(',')}\r\n`
