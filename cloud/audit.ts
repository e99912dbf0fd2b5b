import { auditCommands } from './audit/audit-commands.ts'
import { runCommandLine } from './credentials/command-line.ts'

const outcome = await runCommandLine(auditCommands, process.argv.slice(2), process.env)
process.stdout.write(outcome.stdout)
process.stderr.write(outcome.stderr)
process.exitCode = outcome.exitCode
