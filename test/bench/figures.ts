/** One line of the printed table: a quantity that was measured several times in one run. */
export interface Figure {
  name: string
  /** At least one. */
  values: readonly number[]
  unit: string
  /** The target, in words. */
  aim?: string
  /** For a quantity of several sizes: the dimension, the size, and the common line. */
  growth?: { of: string; at: number; line: string }
}

/** A printed part of the benchmarks. */
export interface Section {
  title: string
  figures: readonly Figure[]
  /** Notes that a reader of the figures needs. */
  notes: readonly string[]
}

/** The value below which `share` (0–1) of all values are. */
export function quantile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b)
  const place = (sorted.length - 1) * share
  const below = sorted[Math.floor(place)]!
  return below + (sorted[Math.ceil(place)]! - below) * (place % 1)
}

/** Each value divided by the value at the same place in `others`. */
export const ratios = (values: readonly number[], others: readonly number[]): number[] =>
  values.map((value, index) => value / others[index]!)

/** Minimum, median and maximum of each figure, in columns. */
export function formatSection({ title, figures, notes }: Section): string {
  const rows = figures.map(({ name, values, unit, aim }) => [
    name,
    ...[0, 0.5, 1].map((share) => formatNumber(quantile(values, share))),
    unit,
    aim ? `aim: ${aim}` : '',
  ])
  const head = ['', 'min', 'median', 'max', '', '']
  const widths = head.map((_, column) => Math.max(...[head, ...rows].map((row) => row[column]!.length)))
  const line = (row: readonly string[]): string =>
    row
      .map((cell, column) => {
        const isNumber = column >= 1 && column <= 3
        return isNumber ? cell.padStart(widths[column]!) : cell.padEnd(widths[column]!)
      })
      .join('  ')
      .trimEnd()
  return [
    title,
    ...[head, ...rows].map((row) => `  ${line(row)}`),
    ...notes.map((note) => `  (${note})`),
    '',
  ].join('\n')
}

/** Three significant digits; an integer from a hundred on, with separated thousands. */
function formatNumber(value: number): string {
  if (Math.abs(value) >= 100) return Math.round(value).toLocaleString('en')
  return value.toFixed(Math.abs(value) >= 10 ? 1 : 2)
}
