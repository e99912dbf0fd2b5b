import type { Runtime } from '../../../protocol/model/runtime.ts'
import type { Queries } from '../store/database.ts'

/** Something that somebody did to hardware, money or credentials. The log is append-only. */
export interface AuditRecord {
  /** `OwnerCredential.actor` and the like. */
  actor: string
  /** For example `controls.open_bin`, `orders.refund`, `keys.create`. */
  action: string
  hubId: number | null
  /** What it was done to: `bin-2`, `order-17`. */
  object: string
  /** `executed`, `refused`, `failed`, `unknown`, … */
  result: string
  detail?: Readonly<Record<string, unknown>>
}

export function appendAudit(q: Queries, runtime: Runtime, record: AuditRecord): Promise<void> {
  return appendAudits(q, runtime, [record])
}

/** Several at once, in their order. */
export async function appendAudits(
  q: Queries,
  { clock }: Pick<Runtime, 'clock'>,
  records: readonly AuditRecord[],
): Promise<void> {
  if (records.length === 0) return
  const at = clock.now()
  await q
    .insertInto('audit_log')
    .values(
      records.map(({ actor, action, hubId, object, result, detail }) => ({
        at,
        actor,
        action,
        hub_id: hubId,
        object,
        result,
        detail: JSON.stringify(detail ?? {}),
      })),
    )
    .execute()
}
