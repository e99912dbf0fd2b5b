import { auditColumns, auditCsvLine, listAudit, type AuditFilter } from '../platform/audit/audit.ts'
import { csvLine } from '../platform/csv.ts'
import type { Queries } from '../platform/store/database.ts'
import type { CommandLine, Invocation } from './command-line.ts'
import { findOwner, numberOf, requireHubs, timeOf } from './options.ts'

const usage = `Usage:
  larder audit list [--hub ID] [--owner NAME] [--since TIME] [--until TIME] [--action NAME] [--actor NAME] [--object NAME]
      [--limit N] [--cursor ID] [--csv]

Records of actions on hardware, money, prices and credentials, with the actor and the result. Prints the newest records
that match, oldest first, one JSON record on each line. If there are older records, a line on stderr names the --cursor
that continues the list.

--owner selects the records of an owner's orders, keys and hubs. A hub's records belong to the owner of that time. A refund
belongs to the owner of its order. --since and --until take an ISO 8601 time. --action takes a whole name (controls.open_bin) or a
beginning that ends in a dot (controls.). --actor takes an actor of the records, such as key:PREFIX or identity:SUB. --limit
is 1 to 10000 (default 100). --cursor prints records before this id.

--csv prints CSV with a header row, newest first; without --limit it prints all matching records. Text cells that begin with
= + - @ get an apostrophe.`

const STANDARD_LIMIT = 100
const MAX_LIMIT = 10_000

/** The audit log, for operators. */
export const auditCommands: CommandLine = {
  usage,
  subcommands: {
    list: {
      options: ['hub', 'owner', 'since', 'until', 'action', 'actor', 'object', 'limit', 'cursor'],
      flags: ['csv'],
      lines: true,
      run: list,
    },
  },
}

async function list({ q, options, terminal }: Invocation): Promise<unknown> {
  const limit = numberOf(options, 'limit', 1, MAX_LIMIT)
  const hubId = numberOf(options, 'hub', 1, Number.MAX_SAFE_INTEGER)
  if (hubId !== undefined) await requireHubs(q, [hubId])
  const filter: AuditFilter = {
    hubId,
    ownerId: options['owner'] === undefined ? undefined : (await findOwner(q, options['owner'])).id,
    since: timeOf(options, 'since'),
    until: timeOf(options, 'until'),
    action: options['action'],
    actor: options['actor'],
    object: options['object'],
    before: numberOf(options, 'cursor', 1, Number.MAX_SAFE_INTEGER),
    limit: limit ?? STANDARD_LIMIT,
  }
  if (options['csv'] !== undefined) {
    terminal.print(csvLine([...auditColumns]))
    await printPages(q, filter, limit ?? Infinity, terminal.print)
    return undefined
  }
  // One record above the limit shows that there are more.
  const found = await listAudit(q, { ...filter, limit: filter.limit + 1 })
  const shown = found.slice(-filter.limit)
  if (found.length > shown.length) terminal.warn?.(`Older records: --cursor ${shown[0]!.id}\n`)
  return shown
}

/** Prints records page by page, newest first: the log may be larger than the memory. */
async function printPages(
  q: Queries,
  filter: AuditFilter,
  atMost: number,
  print: (text: string) => void,
): Promise<void> {
  let before = filter.before
  for (let left = atMost; left > 0;) {
    const limit = Math.min(left, 1000)
    const page = await listAudit(q, { ...filter, before, limit })
    print(page.toReversed().map(auditCsvLine).join(''))
    left -= page.length
    if (page.length < limit) return
    before = page[0]!.id
  }
}
