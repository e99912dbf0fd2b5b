import { randomHex } from '../../../../protocol/model/ids.ts'
import type { Runtime } from '../../../../protocol/model/runtime.ts'
import type { CloudDatabase } from '../../../platform/store/database.ts'

/**
 * The name of this installation, made once with its database. Several may share an account at a processor (a test
 * installation is begun anew; a second one serves another country), and all of them have a payment 1.
 */
export async function readInstallation(
  { kysely: q }: CloudDatabase,
  { random }: Pick<Runtime, 'random'>,
): Promise<string> {
  await q
    .insertInto('installation')
    .values({ id: 1, name: randomHex(random, 8) })
    .onConflict((conflict) => conflict.doNothing())
    .execute()
  const { name } = await q
    .selectFrom('installation')
    .select('name')
    .where('id', '=', 1)
    .executeTakeFirstOrThrow()
  return name
}
