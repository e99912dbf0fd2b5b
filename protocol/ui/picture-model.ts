import { counted } from '../model/counted.ts'
/** The content of a hub's picture. The simulator fills all of it, a hub fills the part that its sensors know. */
export interface HubPicture {
  bins: PictureBin[]
  cabinets: PictureCabinet[]
  fridges: PictureFridge[]
  /** The room's own door. */
  main: PictureDoor | null
  controllers: PictureController[]
}

/** The problem of a device, in a word or two; null if there is none. */
type Trouble = string | null

export interface PictureBin {
  id: string
  number: number
  door: string
  lift: string
  /** Number of units; null if it is not known. */
  units: number | null
  occupied: boolean | null
  /** The order that uses it, or the reason why it is not in use. */
  note: string | null
  trouble: Trouble
}

export interface PictureRow {
  shelf: number
  row: number
  /** Null if the number of units is not known. */
  units: number | null
  /** Capacity in units; null if it is not known. */
  depth: number | null
  /** Name of its product; null if the planogram has none for it. */
  product: string | null
  blocked: string | null
}

/**
 * State of a row. `unassigned`: no product and no units. `unknown`: the number of units is not known. `blocked`: not for
 * sale. `low`: at most a quarter of its capacity.
 */
export type RowState = 'unassigned' | 'unknown' | 'blocked' | 'empty' | 'low' | 'stocked'

export function rowState({ units, depth, product, blocked }: PictureRow): RowState {
  if (product === null && (units === null || units === 0)) return 'unassigned'
  if (units === null || blocked === 'unknown') return 'unknown'
  if (blocked !== null) return 'blocked'
  if (units === 0) return 'empty'
  return depth !== null && units <= depth / 4 ? 'low' : 'stocked'
}

/** A row in words: `Row 1/2/3: Cola, 3 of 10`. */
export function rowText(cabinet: number, row: PictureRow): string {
  const place = `Row ${cabinet}/${row.shelf}/${row.row}`
  const state = rowState(row)
  if (state === 'unassigned') return `${place}: no product`
  const units = row.units === null ? 'unknown number' : `${row.units}`
  const of = row.depth === null ? '' : ` of ${row.depth}`
  const more =
    row.blocked === null
      ? state === 'empty' || state === 'low'
        ? `, ${state}`
        : ''
      : `, not for sale: ${row.blocked}`
  return `${place}: ${row.product ?? 'no product'}, ${units}${of}${more}`
}

export interface PictureCabinet {
  id: string
  number: number
  shelves: { shelf: number; rows: PictureRow[] }[]
  trouble: Trouble
}

export interface PictureDoor {
  /** `main`, `fridge_1_left`. */
  id: string
  open: boolean | null
  locked: boolean | null
  trouble: Trouble
}

export interface PictureFridge {
  id: string
  number: number
  celsius: number | null
  trouble: Trouble
  doors: PictureDoor[]
}

export interface PictureController {
  id: string
  powered: boolean
  connected: boolean
  /** The devices on its line. */
  devices: string[]
  /** Number of lines that have passed; the picture blinks when it grows. */
  traffic: number
  trouble: Trouble
}

const doorText = ({ open, locked }: PictureDoor): string =>
  [
    open === null ? 'unknown whether it is open' : open ? 'open' : 'closed',
    locked === null ? '' : locked ? 'locked' : 'unlocked',
  ]
    .filter(Boolean)
    .join(', ')

const withTrouble = (words: string, trouble: Trouble): string => (trouble ? `${words}. ${trouble}` : words)

/**
 * The name of a device for people: `Bin 2`, `Cabinet 1`, `Fridge 1, left door`, `Main door`; for a controller its own
 * name.
 */
export function nameOf(id: string): string {
  const device = /^(bin|cabinet|fridge|row)-([\d/]+)$/.exec(id)
  if (device) return `${device[1]![0]!.toUpperCase()}${device[1]!.slice(1)} ${device[2]!}`
  const door = /^fridge_(\d+)_(\w+)$/.exec(id)
  if (door) return `Fridge ${door[1]!}, ${door[2]!} door`
  return id === 'main' ? 'Main door' : `Controller ${id}`
}

const rowCounts = [
  ['empty', 'empty'],
  ['low', 'low'],
  ['blocked', 'not for sale'],
  ['unknown', 'unknown'],
  ['unassigned', 'without a product'],
] as const

/** The present state of a device, in a sentence for screen readers. Undefined if the picture has no such device. */
export function sentenceOf(picture: HubPicture, id: string): string | undefined {
  const bin = picture.bins.find((one) => one.id === id)
  if (bin) {
    const content =
      bin.units === null
        ? bin.occupied === null
          ? ''
          : bin.occupied
            ? ', something lies in it'
            : ', empty'
        : `, ${counted(bin.units, 'unit')} in it`
    return withTrouble(
      `Door ${bin.door}, lift ${bin.lift}${content}${bin.note ? `, ${bin.note}` : ''}`,
      bin.trouble,
    )
  }
  const cabinet = picture.cabinets.find((one) => one.id === id)
  if (cabinet) {
    const rows = cabinet.shelves.flatMap((shelf) => shelf.rows)
    const units = rows.reduce((sum, row) => sum + (row.units ?? 0), 0)
    const states = rows.map(rowState)
    const counts = ([state, words]: readonly [RowState, string]): string[] => {
      const count = states.filter((one) => one === state).length
      return count === 0 ? [] : [`${count} ${words}`]
    }
    const assigned = states.filter((state) => state !== 'unassigned').length
    return withTrouble(
      [`${units} units in ${assigned} rows`, ...rowCounts.flatMap(counts)].join(', '),
      cabinet.trouble,
    )
  }
  const fridge = picture.fridges.find((one) => one.id === id)
  if (fridge)
    return withTrouble(
      fridge.celsius === null ? 'No temperature is known' : `${fridge.celsius.toFixed(1)} °C`,
      fridge.trouble,
    )
  const doors = [...picture.fridges.flatMap((one) => one.doors), ...(picture.main ? [picture.main] : [])]
  const door = doors.find((one) => one.id === id)
  if (door) return withTrouble(doorText(door), door.trouble)
  const controller = picture.controllers.find((one) => one.id === id)
  if (!controller) return undefined
  const state = !controller.powered
    ? 'No power'
    : controller.connected
      ? 'Connected to the hub'
      : 'No hub speaks with it'
  return withTrouble(state, controller.trouble)
}
