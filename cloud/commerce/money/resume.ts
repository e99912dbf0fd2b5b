import type { CloudContext } from '../../platform/context.ts'
import type { Tx } from '../../platform/store/database.ts'
import { isOver } from './operation-state.ts'
import { setGoal, type Operation } from './operations.ts'

/**
 * Resumes an operation that was ended, under the lock of its kind, and returns the operation. If its time is over, it
 * stays ended, for example after the operator has retired its hub (`endNow`).
 */
export async function resume(tx: Tx, { runtime }: CloudContext, operation: Operation): Promise<Operation> {
  if (operation.goal === 'done' || isOver(operation, runtime.clock.now())) return operation
  await setGoal(tx, operation, 'done')
  return { ...operation, goal: 'done' }
}
