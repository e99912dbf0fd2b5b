import { placeText } from '../../../protocol/model/subject.ts'
import type { Row } from './csv.ts'
import { money } from './format.ts'

/** A row of a hub, as far as a table changes it. */
export interface TablePlace {
  cabinet: number
  shelf: number
  row: number
  product_id: number
  upc: string
  name: string
  quantity: number
  price: number
  purchase_price: number
  /** Of its prices. */
  currency: string
}

/** One change of an imported table. */
export interface Change {
  /** Row or product, and field. */
  key: string
  text: string
  what: 'quantity' | 'price' | 'purchase_price'
  place: TablePlace
  value: number
}

/**
 * The changes of a table against the present rows. Throws if a cell is no number, if a place is unknown, or if two lines
 * contradict each other.
 */
export function changesOf(places: readonly TablePlace[], rows: readonly Row[]): Change[] {
  const changes = new Map<string, Change & { line: number }>()
  for (const [index, row] of rows.entries()) {
    const line = index + 2
    for (const change of changesAt(placeOf(places, row, line), row, line)) {
      const { key, value, place } = change
      const before = changes.get(key)
      if (before && before.value !== value)
        throw new Error(`Line ${line}: ${place.name} has another value in line ${before.line}.`)
      if (!before) changes.set(key, { ...change, line })
    }
  }
  return [...changes.values()]
}

function numberIn(row: Row, name: string, line: number): number | undefined {
  const text = row[name] ?? ''
  if (text === '') return undefined
  if (!/^\d+$/.test(text)) throw new Error(`Line ${line}: ${name} must be a whole number, not “${text}”.`)
  return Number(text)
}

function placeOf(places: readonly TablePlace[], row: Row, line: number): TablePlace {
  const [cabinet, shelf, number] = ['cabinet', 'shelf', 'row'].map((name) => numberIn(row, name, line))
  const place = places.find((one) => one.cabinet === cabinet && one.shelf === shelf && one.row === number)
  if (!place) throw new Error(`Line ${line}: the hub has no product at this place.`)
  return place
}

/** A count belongs to a row. Prices belong to a product, which may have several rows. */
function changesAt(place: TablePlace, row: Row, line: number): Change[] {
  const { name, upc, product_id, currency } = place
  const at = placeText(place)
  const product = `${name} (${upc})`
  const cents = (value: number): string => money(value, currency)
  const fields = [
    ['quantity', at, (value: number) => `Row ${at}: ${value} instead of ${place.quantity} ${name}`],
    [
      'price',
      product_id,
      (value: number) => `${product}: price ${cents(value)} instead of ${cents(place.price)}`,
    ],
    [
      'purchase_price',
      product_id,
      (value: number) =>
        `${product}: purchase price ${cents(value)} instead of ${cents(place.purchase_price)}`,
    ],
  ] as const
  return fields.flatMap(([what, of, text]) => {
    const value = numberIn(row, what, line)
    if (value === undefined || value === place[what]) return []
    return [{ key: `${what} ${of}`, text: text(value), what, place, value }]
  })
}
