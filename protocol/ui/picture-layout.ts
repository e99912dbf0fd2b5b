import type { HubPicture } from './picture-model.ts'

export interface Box {
  x: number
  y: number
  width: number
  height: number
}

export interface PictureLayout {
  width: number
  height: number
  room: Box
  /** Width between the walls. */
  inner: number
  /** By device id; also the doors of fridges. */
  boxes: ReadonlyMap<string, Box>
}

const GAP = 12
const BOX = 172
const HEAD = 20
export const SHELF = 27
const BIN = 104
/** A finger needs 44 px. A telephone draws the picture at nine tenths of these units. */
const heights = {
  telephone: { fridge: 72, door: 52, controller: 50 },
  other: { fridge: 58, door: 30, controller: 30 },
}

/**
 * The positions of all devices: cabinets in a line at the back, fridges behind them, bins in front, the door in the
 * front wall, controllers outside the room. `columns`: the number side by side, 2 on a telephone.
 */
export function layOut(picture: HubPicture, columns: number): PictureLayout {
  const boxes = new Map<string, Box>()
  const width = columns * BOX + (columns + 1) * GAP + 2
  const inner = width - 2 * GAP
  const tall = columns === 2 ? heights.telephone : heights.other
  let y = GAP + 4

  /** Places boxes side by side, in as many lines as needed. */
  function line<T extends { id: string }>(
    items: readonly T[],
    heightOf: (item: T) => number,
    perLine: number,
  ): void {
    const cell = (inner - (perLine - 1) * GAP) / perLine
    for (let first = 0; first < items.length; first += perLine) {
      const group = items.slice(first, first + perLine)
      const height = Math.max(...group.map(heightOf))
      for (const [index, item] of group.entries())
        boxes.set(item.id, { x: GAP + index * (cell + GAP), y, width: cell, height })
      y += height + GAP
    }
  }

  line(picture.cabinets, ({ shelves }) => HEAD + 6 + shelves.length * SHELF, columns)
  for (const fridge of picture.fridges) {
    // The temperature is at the left, the doors are at its right.
    const left = 92
    boxes.set(fridge.id, { x: GAP, y, width: left - 6, height: tall.fridge })
    const cell = (inner - left - 8 * fridge.doors.length) / Math.max(1, fridge.doors.length)
    for (const [index, door] of fridge.doors.entries())
      boxes.set(door.id, {
        x: GAP + left + index * (cell + 8),
        y: y + 8,
        width: cell,
        height: tall.fridge - 16,
      })
    y += tall.fridge + GAP
  }
  line(picture.bins, () => BIN, columns)
  const wall = y
  if (picture.main) {
    const door = Math.min(150, inner / 2)
    boxes.set(picture.main.id, { x: (width - door) / 2, y: wall - 4, width: door, height: tall.door })
    y += tall.door
  }
  y += GAP
  line(picture.controllers, () => tall.controller, columns)
  return { width, height: y, inner, room: { x: 3, y: 4, width: width - 6, height: wall - 2 }, boxes }
}

const directions: Readonly<Record<string, { x: number; y: number }>> = {
  ArrowRight: { x: 1, y: 0 },
  ArrowLeft: { x: -1, y: 0 },
  ArrowDown: { x: 0, y: 1 },
  ArrowUp: { x: 0, y: -1 },
}

/** The device to which a key leads from `id`; undefined if the key leads nowhere. `Home` and `End` lead to the first and last. */
export function deviceByKey(boxes: ReadonlyMap<string, Box>, id: string, key: string): string | undefined {
  const ids = [...boxes.keys()]
  if (key === 'Home') return ids[0]
  if (key === 'End') return ids.at(-1)
  const direction = directions[key]
  const from = boxes.get(id)
  if (!direction || !from) return undefined
  const here = middleOf(from)
  const found = ids.flatMap((other) => {
    const there = middleOf(boxes.get(other)!)
    const [dx, dy] = [there.x - here.x, there.y - here.y]
    const along = dx * direction.x + dy * direction.y
    const aside = Math.abs(dx * direction.y) + Math.abs(dy * direction.x)
    // A device straight ahead comes before a nearer one at the side.
    return other !== id && along > 1 ? [{ other, cost: along + 2 * aside }] : []
  })
  return found.toSorted((one, other) => one.cost - other.cost)[0]?.other
}

const middleOf = ({ x, y, width, height }: Box) => ({ x: x + width / 2, y: y + height / 2 })

/** The text, or the longest beginning that fits, with an ellipsis. `widthOf` measures a text. */
export function fit(text: string, width: number, widthOf: (text: string) => number): string {
  if (widthOf(text) <= width) return text
  const letters = Array.from(text)
  let most = letters.length - 1
  while (most > 0 && widthOf(`${letters.slice(0, most).join('')}…`) > width) most -= 1
  return most > 0 ? `${letters.slice(0, most).join('')}…` : ''
}
