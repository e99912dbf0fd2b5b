import { expect, test } from 'vitest'
import { grantRole, revokeRole } from '../../../../cloud/platform/credentials/roles.ts'
import type { CloudDatabase, Tx } from '../../../../cloud/platform/store/database.ts'
import { addPasskey } from '../../../../cloud/people/sessions/passkeys.ts'
import { systemRuntime } from '../../../../protocol/system-runtime.ts'
import { Authenticator } from '../../../world/authenticator.ts'
import { testContext } from '../../../world/context.ts'
import { onEachDatabase } from '../../../world/database.ts'
import { lockWaits } from '../../../world/lock-waits.ts'

const runtime = systemRuntime()
const ORIGIN = 'http://localhost:8080'
const challenge = Buffer.from('a challenge of this service').toString('base64url')

/** The same database; each transaction commits only after `release`. */
function held(db: CloudDatabase) {
  let [release, isDone] = [() => {}, () => {}]
  const released = new Promise<void>((resolve) => (release = resolve))
  const done = new Promise<void>((resolve) => (isDone = resolve))
  const transact = <T>(work: (tx: Tx) => Promise<T>): Promise<T> =>
    db.transact(async (tx) => {
      const result = await work(tx)
      isDone()
      await released
      return result
    })
  return {
    db: Object.create(db, { transact: { value: transact } }) as CloudDatabase,
    done,
    release: () => release(),
  }
}

onEachDatabase('the revocation of a role', (open) => {
  async function ann(roles: number) {
    const db = await open()
    const grant = { identity: 'ann', role: 'technician' as const, hubs: '*' as const }
    const ids: number[] = []
    for (let role = 0; role < roles; role += 1) ids.push(await grantRole(db.kysely, runtime, grant))
    const passkey = { id: 'first', identity: 'ann', name: 'Ann', email: null, public_key: 'x', counter: 0 }
    await db.kysely
      .insertInto('passkeys')
      .values({ ...passkey, created_at: 1 })
      .execute()
    const passkeys = () => db.kysely.selectFrom('passkeys').select('id').execute()
    return { db, ids, passkeys }
  }

  test('the last role of a person ends a passkey that is being added at that moment', async () => {
    const { db, ids, passkeys } = await ann(1)
    const slow = held(db)
    const response = { ...new Authenticator().register({ challenge }, ORIGIN), label: null }
    const adding = addPasskey(
      testContext(slow.db, runtime),
      new URL(ORIGIN),
      { challenge, identity: 'ann' },
      response,
    )
    await slow.done
    const revoking = db.transact((tx) => revokeRole(tx, ids[0]!))
    await lockWaits(db)
    slow.release()
    await adding
    expect(await revoking).toMatchObject({ identity: 'ann' })
    expect(await passkeys()).toEqual([])
  })

  test('a person who loses both roles at the same moment loses the passkey', async () => {
    const { db, ids, passkeys } = await ann(2)
    const slow = held(db)
    const first = slow.db.transact((tx) => revokeRole(tx, ids[0]!))
    await slow.done
    const second = db.transact((tx) => revokeRole(tx, ids[1]!))
    await lockWaits(db)
    slow.release()
    await Promise.all([first, second])
    expect(await passkeys()).toEqual([])
  })
})
