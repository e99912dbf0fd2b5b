import { sql } from 'kysely'
import type { Tx } from '../../platform/store/database.ts'
import type { Tables } from '../../platform/store/schema.ts'

/** Columns that name an actor, as `Credential.actor`. A new column of this kind must be added here. */
const actorColumns = [
  ['audit_log', 'actor'],
  ['commands', 'actor'],
  ['refunds', 'actor'],
  ['management_changes', 'actor'],
  ['alarms', 'acknowledged_by'],
] as const satisfies readonly (readonly [keyof Tables, string])[]

/**
 * Replaces a person's identity by the user's number in every actor column of the books. The actions stay on
 * record. The rights that an operator has granted to the identity (`roles`) stay, too: the operator revokes
 * them.
 */
export async function forgetActor(tx: Tx, identity: string, userId: number): Promise<void> {
  const actor = `identity:${identity}`
  const number = `user:${userId}`
  const acknowledged = await tx.q
    .selectFrom('alarms')
    .select('seq')
    .where('acknowledged_by', '=', actor)
    .limit(1)
    .executeTakeFirst()
  for (const [table, column] of actorColumns)
    // The second condition matches the partial indexes of persons on these tables.
    await sql`
      update ${sql.table(table)} set ${sql.ref(column)} = ${number}
      where ${sql.ref(column)} = ${actor} and ${isPerson(column)}`.execute(tx.q)
  await tx.q
    .updateTable('refunds')
    .set({ request_key: null })
    .where('actor', '=', number)
    .where('request_key', 'is not', null)
    .execute()
  if (!acknowledged) return
  // Events of acknowledged alarms contain the name.
  const [from, to] = [actor, number].map((name) => `"acknowledged_by":${JSON.stringify(name)}`)
  await sql`
    update events set data = replace(data, ${from}, ${to})
    where type in ('alarm.acknowledged', 'alarm.cleared', 'alarm.raised') and data <> replace(data, ${from}, ${to})
  `.execute(tx.q)
}

const isPerson = (column: string) => sql`substr(${sql.ref(column)}, 1, 9) = 'identity:'`
