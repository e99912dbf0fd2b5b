import { issueAbove } from '../../../../../cloud/platform/store/next-id.ts'
import { noteMoved, orderMove, shownMove } from '../../../../../cloud/operations/ownership/next-cell.ts'
import {
  exportOwner,
  importOwner,
  noteExported,
  OwnerFile,
} from '../../../../../cloud/operations/ownership/owner-file.ts'
import type { CloudContext } from '../../../../../cloud/platform/context.ts'
import { storeDesired } from '../../../../../cloud/operations/hubs/desired.ts'
import { HardwareDescription } from '../../../../../protocol/model/hardware.ts'
import { upcCheckDigit } from '../../../../../protocol/model/upc.ts'
import { demoHub } from '../../../../support/demo-hub.ts'
import { type OpenDatabase } from '../../../../world/database.ts'
import { openHub } from './owned-hub.ts'

export const next = { cloud: 'https://shop.example/c1', hub_id: 100_000_001, code: 'K7QM2XRA' }

/** Hub 1 in maintenance, with a connected board that can move and has everything of the cloud. */
export async function movingHub(open: OpenDatabase) {
  const opened = await openHub(open)
  const { db, context } = opened
  const set = (columns: object) => db.kysely.updateTable('hubs').set(columns).where('id', '=', 1).execute()
  const setSession = (columns: object) => db.kysely.updateTable('hub_sessions').set(columns).execute()
  const upc = `03600029145${upcCheckDigit('03600029145')}`
  await db.kysely.updateTable('products').set({ upc }).execute()
  await db.transact((tx) =>
    storeDesired(tx, 1, { hardware: HardwareDescription.parse(demoHub), settings: { HEARTBEAT_MS: '5000' } }),
  )
  await db.kysely
    .insertInto('hub_people')
    .values({ hub_id: 1, name: 'Ann', pin_digest: 'digest', created_at: 0 })
    .execute()
  await set({ hub_status: 'maintenance' })
  const { desired_version } = await db.kysely
    .selectFrom('hubs')
    .select('desired_version')
    .where('id', '=', 1)
    .executeTakeFirstOrThrow()
  await setSession({ can_move: 1, applied_version: desired_version })
  const deliver = () =>
    db.kysely
      .updateTable('hub_outboxes')
      .set((eb) => ({ base: eb.ref('last') }))
      .execute()
  await deliver()
  const read = (id = 1) => db.transact((tx) => exportOwner(tx, context, { id, name: 'One' }, '*'))
  const orderOf = async () =>
    (await db.kysely.selectFrom('hub_moves').select('ordered_at').executeTakeFirstOrThrow()).ordered_at
  const digest = async () =>
    (await db.kysely.selectFrom('hub_exports').select('digest').executeTakeFirst())?.digest ?? ''
  return {
    ...opened,
    set,
    setSession,
    deliver,
    read,
    desired_version,
    exportIt: async () => {
      const file = await read()
      await db.transact((tx) => noteExported(tx, file))
    },
    isRetired: async () =>
      (
        await db.kysely
          .selectFrom('hubs')
          .select(['retired_at'])
          .where('id', '=', 1)
          .executeTakeFirstOrThrow()
      ).retired_at !== null,
    /** The digest of the last export. */
    digest,
    send: async (to: { digest?: string } = {}) => {
      const last = await digest()
      await db.transact((tx) => orderMove(tx, context, 1, { ...next, digest: last, ...to }))
    },
    shown: () => shownMove(db.kysely, 1),
    answer: async (error?: string, as = next.hub_id) =>
      noteMoved(context, 1, {
        order: await orderOf(),
        hub_id: as,
        ...(error !== undefined && { error }),
      }),
  }
}

/** Hub 1 of owner 1 with everything that a file needs. */
export async function exportedHub(open: OpenDatabase) {
  const opened = await movingHub(open)
  const { context, db, read } = opened
  // The rows of the test world have chosen ids.
  await db.transact(async (tx) => {
    for (const name of ['owners', 'hubs', 'products', 'categories'] as const)
      await issueAbove(tx, name, { id: 50, maxStep: Infinity })
  })
  const file = OwnerFile.parse(JSON.parse(JSON.stringify(await read())))
  return {
    ...opened,
    file: { ...file, owner: 'Elsewhere' },
    importIt: (from: OwnerFile, ownerId?: number, within: CloudContext = context) =>
      importOwner(within, from, {
        ownerId,
        actor: 'command line',
        async createOwner(tx) {
          const { id } = await tx.q
            .insertInto('owners')
            .values({ name: from.owner })
            .returning('id')
            .executeTakeFirstOrThrow()
          return id
        },
      }),
  }
}
