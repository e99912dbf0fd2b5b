import type { LocalActor, LocalEntry } from '../../protocol/mqtt/hub-entries.ts'
import type { Context } from './context.ts'

export interface LocalFacts extends Partial<Pick<LocalEntry, 'outcome'>> {
  /** Undefined if the caller did not name a person. */
  by: LocalActor | undefined
  /** Units in the row. */
  before?: number
  after?: number
}

/** Reports an action of a person at the hub to the cloud's audit log. Called within the transaction of the action. */
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
