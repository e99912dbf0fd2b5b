import type { Runtime } from '../../protocol/model/runtime.ts'
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

export async function appendAudit(q: Queries, { clock }: Runtime, record: AuditRecord): Promise<void> {
  await q
    .insertInto('audit_log')
    .values({
      at: clock.now(),
      actor: record.actor,
      action: record.action,
      hub_id: record.hubId,
      object: record.object,
      result: record.result,
      detail: JSON.stringify(record.detail ?? {}),
    })
    .execute()
}
