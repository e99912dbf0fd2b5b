import type { Evidence, Motion, Violation } from './evidence.ts'

const countBy = <T>(items: readonly T[], key: (item: T) => string | undefined): Map<string, number> => {
  const counts = new Map<string, number>()
  for (const item of items) {
    const name = key(item)
    if (name !== undefined) counts.set(name, (counts.get(name) ?? 0) + 1)
  }
  return counts
}

const violation = (invariant: Violation['invariant'], text: string): Violation => ({ invariant, text })

/** I1: one motion per operation, and at most one operation that moved something for each unit of an order. */
export function oneMotionPerOperation(evidence: Evidence): Violation[] {
  const { motions, refOfOperation, doubleDropsRaised } = evidence.world
  const twice = [...countBy(motions.filter(isMotion), (motion) => motion.operation_id)]
    .filter(([, count]) => count > 1)
    .map(([operation, count]) => violation('I1', `operation ${operation} moved ${count} times`))

  const dropsOfUnit = new Map<string, string[]>()
  for (const motion of motions) {
    const operation = operationOf(motion)
    const ref = operation === undefined ? undefined : refOfOperation.get(operation)
    if (operation === undefined || ref === undefined || unitsFallen(motion) === 0) continue
    dropsOfUnit.set(ref, [...(dropsOfUnit.get(ref) ?? []), operation])
  }
  const unitTwice = [...dropsOfUnit]
    .filter(([, operations]) => new Set(operations).size > 1)
    .map(([ref, operations]) => violation('I1', `unit ${ref} fell in operations ${operations.join(', ')}`))

  const tooMany = motions
    .filter((motion) => unitsFallen(motion) > 1 && !doubleDropsRaised)
    .map((motion) =>
      violation('I1', `motion ${motion.n} dropped ${unitsFallen(motion)} units without a double drop`),
    )
  const early = evidence.world.unjournaled.map((operation) =>
    violation('I1', `the command of operation ${operation} left before its intent was committed`),
  )
  return [...twice, ...unitTwice, ...tooMany, ...early]
}

/** I2: nothing stale moves. */
export function nothingStaleMoves(evidence: Evidence): Violation[] {
  return evidence.world.motions.flatMap((motion) => {
    const command = evidence.commandOfOperation.get(motion.operation_id ?? '')
    return command !== undefined && evidence.staleCommands.has(command)
      ? [
          violation(
            'I2',
            `motion ${motion.n} (${motion.action} ${motion.device}) came from stale command ${command}`,
          ),
        ]
      : []
  })
}

/**
 * I7: after any crash nothing moves, no lock stays open, and no motor ran for longer than allowed. No row turned behind an
 * open door. No firmware was sent during a motion.
 */
export function nothingLeftMoving(evidence: Evidence): Violation[] {
  return [
    ...(evidence.world.hasty ?? []).map((controller) =>
      violation('I7', `${controller} stored a block of a firmware while a motor ran`),
    ),
    ...(evidence.world.reachable ?? []).map((sentence) => violation('I7', sentence)),
    ...evidence.world.moving.map((device) => violation('I7', `${device} is still moving`)),
    ...evidence.world.unlocked.map((lock) => violation('I7', `${lock} is still unlocked`)),
    ...evidence.world.overran.map(({ operation_id, ms, allowedMs }) =>
      violation(
        'I7',
        `the motor of operation ${operation_id} ran for ${ms} ms, and ${allowedMs} were allowed`,
      ),
    ),
  ]
}

/** Units that dropped in this act, seen by a sensor or not. */
export function unitsFallen({ action, detail }: Motion): number {
  return action === 'dispense' || action === 'drop' ? Number(detail['fallen'] ?? 0) : 0
}

/** The operation of an act. A unit that hung and dropped later belongs to the earlier turn. */
export function operationOf({ operation_id, detail }: Motion): string | undefined {
  const after = detail['after']
  return operation_id ?? (typeof after === 'string' ? after : undefined)
}

/** The facing that units dropped from, as `cabinet-shelf-row`. */
export function locationOf({ device, detail }: Motion): string | undefined {
  const { shelf, row } = detail
  return device.startsWith('cabinet-')
    ? `${device.slice('cabinet-'.length)}-${Number(shelf)}-${Number(row)}`
    : undefined
}

/** The log also contains acts of people, which have no operation. */
const isMotion = (motion: Motion): boolean => motion.operation_id !== undefined
