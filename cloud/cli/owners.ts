import { writeFileSync } from 'node:fs'
import { normalName } from '../../protocol/model/name-text.ts'
import type { Runtime } from '../../protocol/model/runtime.ts'
import { fileProblem } from '../../protocol/model/system-error.ts'
import { renewClaimCode } from '../enrolment/claim-codes.ts'
import { exportOwner, importOwner, OwnerFile } from '../operations/ownership/owner-file.ts'
import { timestamp, timestampOrNull } from '../platform/calendar/timestamps.ts'
import type { Queries } from '../platform/store/database.ts'
import { COMMAND_LINE, contextOf, recordAct, type CommandLine, type Invocation } from './command-line.ts'
import { baseOf } from './hub-code.ts'
import { findOwner, hubsOf, idOf, nameOf, readJsonFile, requireHubs, required } from './options.ts'

const usage = `Usage:
  larder owners list
  larder owners create --name NAME
  larder owners rename ID --name NAME
  larder owners export NAME [--hubs 17,18] [--to FILE]
  larder owners import FILE

Owners of hubs. Each name exists once. Prints JSON: owner_id, name, hub_ids and created_at (null if it is unknown, as for the owners of a demo).

export writes an owner and its hubs (all, or those of --hubs) for another cell: records, settings, hardware, products, prices, planogram, counted units, and
the people of the hubs' pages with digests of their PINs. import creates them there. The owner is created if no owner has its name. It prints a claim code for each hub, and the command that sends its
board here: run that command in the former cell (larder hubs retire --help). Orders, money, deals, banners, pictures, roles, API
keys, webhooks and contacts do not move. The page "Beyond one installation" has the steps.`

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
    export: {
      options: ['name', 'hubs', 'to'],
      positionals: ['name'],
      async run({ q, options }) {
        const owner = await findOwner(q, required(options, 'name'))
        const hubs = options['hubs'] === undefined ? '*' : hubsOf(options)
        await requireHubs(q, hubs, owner.id)
        const file = await exportOwner(q, owner, { hubs, now: runtime.clock.now() })
        if (options['to'] === undefined) return file
        const path = required(options, 'to')
        try {
          writeFileSync(path, `${JSON.stringify(file, null, 2)}\n`)
        } catch (error) {
          throw new Error(`--to: ${path} cannot be written: ${fileProblem(error)}`, { cause: error })
        }
        return { owner: file.owner, hub_ids: file.hubs.map(({ hub_id }) => hub_id), file: path }
      },
    },
    import: {
      store: 'creates',
      options: ['file'],
      positionals: ['file'],
      run: (invocation) => importFile(invocation, runtime),
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

async function importFile({ q, db, settings, options }: Invocation, runtime: Runtime): Promise<unknown> {
  const file = readJsonFile(required(options, 'file'), OwnerFile)
  const known = await q.selectFrom('owners').select('id').where('name', '=', file.owner).executeTakeFirst()
  const owner = known ?? (await db.transact((tx) => createOwner(tx.q, runtime, file.owner)))
  const context = contextOf({ db, settings }, runtime)
  const imported = await importOwner(context, owner.id, file, COMMAND_LINE)
  const hubs: object[] = []
  for (const { formerId, hubId, products } of imported) {
    const { code, expiresAt } = await db.transact((tx) => renewClaimCode(tx, context, hubId))
    hubs.push({
      former_hub_id: formerId,
      hub_id: hubId,
      products,
      claim_code: code,
      claim_expires_at: timestamp(expiresAt),
      send: `larder hubs retire ${formerId} --to ${baseOf(settings)} --as ${hubId} --code ${code}`,
    })
  }
  return { owner_id: owner.id, owner: file.owner, hubs }
}

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
