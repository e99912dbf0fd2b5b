import type { Box } from './picture-layout.ts'

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
