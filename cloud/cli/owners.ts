import { normalName } from '../../protocol/model/name-text.ts'
import type { Runtime } from '../../protocol/model/runtime.ts'
import { timestampOrNull } from '../platform/calendar/timestamps.ts'
import type { Queries } from '../platform/store/database.ts'
import { recordAct, type CommandLine } from './command-line.ts'
import { idOf, nameOf } from './options.ts'

const usage = `Usage:
  larder owners list
  larder owners create --name NAME
  larder owners rename ID --name NAME

Owners of hubs. Each name exists once. Prints JSON: owner_id, name, hub_ids and created_at (null if it is unknown, as for the owners of a demo).`

/** Owners, for operators. */
export const ownerCommands = (runtime: Runtime): CommandLine => ({
  usage,
  subcommands: {
    list: { options: [], run: ({ q }) => showOwners(q) },
    create: {
      store: 'creates',
      options: ['name'],
      run: ({ db, options }) =>
        db.transact(async (tx) => {
          const { id, name } = await createOwner(tx.q, runtime, nameOf(options, 'name'))
          await recordAct(tx.q, runtime, { action: 'owners.create', object: `owner-${id}`, detail: { name } })
          return showOwner(tx.q, id)
        }),
    },
    rename: {
      options: ['id', 'name'],
      positionals: ['id'],
      run: ({ db, options }) => {
        const ownerId = idOf(options, 'id', "an owner's")
        const name = nameOf(options, 'name')
        return db.transact(async (tx) => {
          const before = await showOwner(tx.q, ownerId)
          if (before.name !== name) {
            await requireFree(tx.q, name)
            await tx.q.updateTable('owners').set({ name }).where('id', '=', ownerId).execute()
            const detail = { from: before.name, to: name }
            await recordAct(tx.q, runtime, { action: 'owners.rename', object: `owner-${ownerId}`, detail })
          }
          return showOwner(tx.q, ownerId)
        })
      },
    },
  },
})

/** Registers an owner, in the caller's transaction. Throws if the name exists. */
export async function createOwner(
  q: Queries,
  runtime: Runtime,
  given: string,
): Promise<{ id: number; name: string }> {
  const name = normalName(given)
  await requireFree(q, name)
  return q
    .insertInto('owners')
    .values({ name, created_at: runtime.clock.now() })
    .returning(['id', 'name'])
    .executeTakeFirstOrThrow()
}

async function requireFree(q: Queries, name: string): Promise<void> {
  const known = await q.selectFrom('owners').select('id').where('name', '=', name).executeTakeFirst()
  if (known) throw new Error(`the name exists: owner ${known.id} is ${JSON.stringify(name)}`)
}

async function showOwner(q: Queries, ownerId: number) {
  const owner = (await showOwners(q)).find(({ owner_id }) => owner_id === ownerId)
  if (!owner) throw new Error(`no such owner: ${ownerId}`)
  return owner
}

async function showOwners(q: Queries) {
  const owners = await q.selectFrom('owners').selectAll().orderBy('id').execute()
  const hubs = await q.selectFrom('hubs').select(['id', 'owner_id']).orderBy('id').execute()
  return owners.map(({ id, name, created_at }) => ({
    owner_id: id,
    name,
    hub_ids: hubs.filter(({ owner_id }) => owner_id === id).map((hub) => hub.id),
    created_at: timestampOrNull(created_at === 0 ? null : created_at),
  }))
}
