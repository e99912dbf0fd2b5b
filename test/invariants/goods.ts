import { unitOfRef } from '../../edge/core/operations/intend.ts'
import { operationOf, unitsFallen } from './motion.ts'
import type { Evidence, Violation } from './evidence.ts'

/** I15: nothing is sold from a fridge without recent proof that it is cold. */
export const nothingUnprovenIsSold = ({ world }: Evidence): Violation[] =>
  world.soldUnproven.map(({ operation_id, ms }) => ({
    invariant: 'I15',
    text: `operation ${operation_id} dispensed a sold unit ${Math.round(ms / 1000)} s after the last proof that its fridge was cold`,
  }))

/** I3: no unit drops into a bin that contains units of another order. */
export function goodsStayApart({ world }: Evidence): Violation[] {
  const violations: Violation[] = []
  /** The order of each unit in a bin, oldest unit first. */
  const contents = new Map<string, string[]>()
  for (const motion of world.motions) {
    if (motion.action === 'take_items') contents.get(motion.device)?.splice(0, Number(motion.detail['units']))
    const fallen = unitsFallen(motion)
    const owner = unitOfRef(world.refOfOperation.get(operationOf(motion) ?? '') ?? '')?.order_id
    if (fallen === 0 || owner === undefined) continue
    const bin = `bin-${Number(motion.detail['bin'])}`
    const held = contents.get(bin) ?? []
    const other = held.find((one) => one !== owner)
    if (other !== undefined)
      violations.push({
        invariant: 'I3',
        text: `motion ${motion.n}: goods of order ${owner} fell onto those of order ${other} in ${bin}`,
      })
    contents.set(bin, [...held, ...Array.from({ length: fallen }, () => owner)])
  }
  return violations
}
