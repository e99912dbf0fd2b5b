import { errorHelp } from '../../protocol/contract/error-help.ts'
import { errorCodeNames, errorCodes } from '../../protocol/model/error-codes.ts'

/** Every code with its status, cause and cure, by status. */
export function errorGuide(): string {
  const statuses = [...new Set(errorCodeNames.map((code) => errorCodes[code].status))].toSorted(
    (a, b) => a - b,
  )
  return statuses
    .map((status) => {
      const rows = errorCodeNames
        .filter((code) => errorCodes[code].status === status)
        .map((code) => `| \`${code}\` | ${errorHelp[code].cause} | ${errorHelp[code].cure} |`)
      return `### ${status}\n\n| Code | Cause | Cure |\n|---|---|---|\n${rows.join('\n')}`
    })
    .join('\n\n')
}
