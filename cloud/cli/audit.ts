import { listAudit } from '../platform/audit/audit.ts'
import { numberOf, timeOf, type CommandLine } from './command-line.ts'

const usage = `Usage:
  npm run audit -- list [--hub N] [--since TIME] [--until TIME] [--action NAME] [--actor NAME] [--object NAME] [--limit N]

What was done to hardware, money, prices and credentials: who asked for it, and what came of it. Prints the newest records
that match, oldest first, each as JSON on a line of its own.
--since and --until take an ISO 8601 time. --action takes a whole name (controls.open_bin) or the beginning of names that
ends in a dot (controls.). --actor: key:PREFIX, identity:SUB, and the like. --limit: 1 to 10000; 100 where it is not given.`

const STANDARD_LIMIT = 100
const MAX_LIMIT = 10_000

/** The audit log, for operators. */
export const auditCommands: CommandLine = {
  usage,
  subcommands: {
    list: {
      options: ['hub', 'since', 'until', 'action', 'actor', 'object', 'limit'],
      lines: true,
      run: ({ q, options }) =>
        listAudit(q, {
          hubId: numberOf(options, 'hub', 1, Number.MAX_SAFE_INTEGER),
          since: timeOf(options, 'since'),
          until: timeOf(options, 'until'),
          action: options['action'],
          actor: options['actor'],
          object: options['object'],
          limit: numberOf(options, 'limit', 1, MAX_LIMIT) ?? STANDARD_LIMIT,
        }),
    },
  },
}
