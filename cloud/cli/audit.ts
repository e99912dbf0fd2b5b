import { required, type CommandLine } from './command-line.ts'
import { UsageError } from '../platform/settings/usage-error.ts'
import type { Queries } from '../platform/store/database.ts'
import { listAudit, type AuditFilter } from '../platform/audit/audit.ts'

const usage = `Usage:
  npm run audit -- list [--hub N] [--since TIME] [--until TIME] [--action NAME] [--actor NAME] [--object NAME] [--limit N]

What was done to hardware, money, prices and credentials: who asked for it, and what came of it. Prints the newest records
that fit, oldest first, each as JSON on a line of its own.
--since and --until take an ISO 8601 time. --action takes a whole name (controls.open_bin) or the beginning of names that
ends in a dot (controls.). --actor: key:PREFIX, identity:SUB, and the like. --limit: 1 to 10000; 100 where it is not given.`

const STANDARD_LIMIT = 100
const MAX_LIMIT = 10_000

/** The audit log, for operators (contract §14 has its siblings). */
export const auditCommands: CommandLine = {
  usage,
  subcommands: {
    list: {
      options: ['hub', 'since', 'until', 'action', 'actor', 'object', 'limit'],
      lines: true,
      run: (q: Queries, options) => {
        const filter: AuditFilter = {
          hubId: numberOf('hub', options['hub'], 1, Number.MAX_SAFE_INTEGER),
          since: timeOf('since', options['since']),
          until: timeOf('until', options['until']),
          action: options['action'],
          actor: options['actor'],
          object: options['object'],
          limit: numberOf('limit', options['limit'], 1, MAX_LIMIT) ?? STANDARD_LIMIT,
        }
        return listAudit(q, filter)
      },
    },
  },
}

function numberOf(name: string, text: string | undefined, min: number, max: number): number | undefined {
  if (text === undefined) return undefined
  const value = Number(required({ [name]: text }, name))
  if (/^\d+$/.test(text) && value >= min && value <= max) return value
  throw new UsageError(`--${name} must be a whole number from ${min} to ${max}: ${text}`)
}

function timeOf(name: string, text: string | undefined): number | undefined {
  if (text === undefined) return undefined
  const at = Date.parse(text)
  if (Number.isNaN(at)) throw new UsageError(`--${name} is not a time: ${text}`)
  return at
}
