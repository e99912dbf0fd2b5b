import { writeFileSync } from 'node:fs'
import { normalName } from '../../protocol/model/name-text.ts'
import type { Runtime } from '../../protocol/model/runtime.ts'
import { fileProblem } from '../../protocol/model/system-error.ts'
import { renewClaimCode } from '../enrolment/claim-codes.ts'
import {
  exportOwner,
  importOwner,
  MAX_FILE_BYTES,
  noteExported,
  OwnerFile,
} from '../operations/ownership/owner-file.ts'
import { timestamp, timestampOrNull } from '../platform/calendar/days.ts'
import type { Queries } from '../platform/store/database.ts'
import { COMMAND_LINE, recordAct, type CommandLine, type Invocation } from './command-line.ts'
import { baseOf } from './hub-code.ts'
import { conform, findOwner, hubsOf, idOf, nameOf, readJsonFile, requireHubs, required } from './options.ts'

const usage = `Usage:
  larder owners list
  larder owners create --name NAME
  larder owners rename ID --name NAME
  larder owners export NAME [--hubs 17,18] [--to FILE]
  larder owners import FILE [--owner ID]

Owners of hubs. Each name exists once. Prints JSON: owner_id, name, hub_ids and created_at (null if it is unknown, as for the owners of a demo).

export writes an owner and its hubs in maintenance (all, or those of --hubs) for another cell: records, settings, hardware, products, prices, planogram,
units, and the people of the hubs' pages with digests of their PINs. Each hub must be online. import creates them there, and prints a claim code for each
hub and the command that sends the hub (larder hubs send --help). An interrupted import continues when it is repeated. Another export of an imported hub
is refused until that hub is retired. --owner names an owner that exists there. Orders, money, deals, banners, pictures, roles, API keys, webhooks,
contacts and management addresses do not move. The page "Beyond one installation" has the steps.`

/** Owners, for operators. */
export const ownerCommands: CommandLine = {
  usage,
  subcommands: {
    list: { options: [], run: ({ q }) => showOwners(q) },
    create: {
      store: 'creates',
      options: ['name'],
      run: ({ db, options, runtime }) =>
        db.transact(async (tx) => {
          const { id, name } = await createOwner(tx.q, runtime, nameOf(options, 'name'))
          await recordAct(tx.q, runtime, { action: 'owners.create', object: `owner-${id}`, detail: { name } })
          return showOwner(tx.q, id)
        }),
    },
    export: {
      options: ['name', 'hubs', 'to'],
      positionals: ['name'],
      async run({ q, db, options, context }) {
        const owner = await findOwner(q, required(options, 'name'))
        const hubs = options['hubs'] === undefined ? '*' : hubsOf(options)
        await requireHubs(q, hubs, owner.id)
        const file = await db.transact((tx) => exportOwner(tx, context, owner, hubs))
        // A fault is found here, not in the other cell.
        conform(OwnerFile, file, `owner ${owner.id}`)
        const path = options['to']
        if (path !== undefined)
          try {
            writeFileSync(path, `${JSON.stringify(file, null, 2)}\n`)
          } catch (error) {
            throw new Error(`--to: ${path} cannot be written: ${fileProblem(error)}`, { cause: error })
          }
        await db.transact((tx) => noteExported(tx, file))
        if (path === undefined) return file
        return { owner: file.owner, hub_ids: file.hubs.map(({ hub_id }) => hub_id), file: path }
      },
    },
    import: {
      store: 'creates',
      options: ['file', 'owner'],
      positionals: ['file'],
      run: importFile,
    },
    rename: {
      options: ['id', 'name'],
      positionals: ['id'],
      run: ({ db, options, runtime }) => {
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
}

async function importFile({ db, settings, options, context, runtime }: Invocation): Promise<unknown> {
  const file = readJsonFile(required(options, 'file'), OwnerFile, MAX_FILE_BYTES)
  const given = options['owner'] === undefined ? undefined : idOf(options, 'owner', "an owner's")
  if (given !== undefined) await showOwner(db.kysely, given)
  const { ownerId, hubs } = await importOwner(context, file, {
    ownerId: given,
    actor: COMMAND_LINE,
    createOwner: async (tx) => (await createOwner(tx.q, runtime, file.owner)).id,
  })
  const shown: object[] = []
  for (const { formerId, hubId, digest, products, isEnrolled, hasMoved } of hubs) {
    const hub = { former_hub_id: formerId, hub_id: hubId, products, is_enrolled: isEnrolled }
    if (hasMoved) {
      shown.push(hub)
      continue
    }
    const { code, expiresAt } = await db.transact((tx) => renewClaimCode(tx, context, hubId))
    shown.push({
      ...hub,
      claim_code: code,
      claim_expires_at: timestamp(expiresAt),
      send: `larder hubs send ${formerId} --to ${baseOf(settings)} --as ${hubId} --export ${digest} --code-file FILE`,
    })
  }
  return { owner_id: ownerId, owner: file.owner, hubs: shown }
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
