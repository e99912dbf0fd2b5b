import type { LocalActor, LocalEntry } from '../../protocol/mqtt/hub-entries.ts'
import type { Context } from './context.ts'

export interface LocalFacts extends Partial<Pick<LocalEntry, 'outcome'>> {
  /** Absent: the caller did not say who. */
  by: LocalActor | undefined
  /** Units in the row. */
  before?: number
  after?: number
}

/** Reports to the cloud's audit log what a person did at the hub itself. Called within the transaction of the act. */
export function reportLocal(
  { ledger }: Pick<Context, 'ledger'>,
  action: string,
  subject: string,
  { by, outcome = 'executed', ...units }: LocalFacts,
): void {
  ledger.report({
    kind: 'local',
    action,
    subject,
    outcome,
    person: by?.person ?? null,
    shared_token: by?.shared_token ?? false,
    ...units,
  })
}
