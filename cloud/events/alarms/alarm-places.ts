import type { AlarmKindName } from '../../../protocol/model/alarms.ts'
import type { CloudContext } from '../../platform/context.ts'
import type { Tx } from '../../platform/store/database.ts'
import { aboutSales, isAboutSale } from './about-sales.ts'

/** An alarm of a hub that is not open yet. */
interface Wanted {
  hubId: number
  kind: AlarmKindName
  subject: string | null
}

/**
 * Whether the hub may have another open alarm. A stolen or faulty hub must not flood its owner. Some places are
 * reserved for alarms about the whole hub, such as its silence. The cloud itself raises alarms about sales: they are
 * always raised, and take no place.
 */
export async function hasPlace(
  tx: Tx,
  context: CloudContext,
  { hubId, kind, subject }: Wanted,
): Promise<boolean> {
  if (isAboutSale(kind)) return true
  const { alarmsPerHub } = context.settings
  const { open } = await tx.q
    .selectFrom('alarms')
    .select((eb) => eb.fn.countAll<number>().as('open'))
    .where('hub_id', '=', hubId)
    .where('cleared_at', 'is', null)
    .where('kind', 'not in', aboutSales)
    .executeTakeFirstOrThrow()
  const kept = subject === null ? 0 : Math.floor(alarmsPerHub / 10)
  if (open < alarmsPerHub - kept) return true
  countRefused(tx, context, { hubId, kind, subject, open })
  return false
}

/** One log line for each transaction, with the number of alarms without a place. */
const refusedIn = new WeakMap<Tx, { count: number }>()
function countRefused(tx: Tx, { log }: CloudContext, about: object): void {
  const refused = refusedIn.get(tx) ?? { count: 0 }
  refusedIn.set(tx, refused)
  // Counted after the commit, because a savepoint may undo some of them.
  tx.afterCommit(() => {
    refused.count += 1
    if (refused.count > 1) return
    const message = 'a hub has too many open alarms: these are only logged'
    queueMicrotask(() => log.warn({ ...about, refused: refused.count }, message))
  })
}
