import type { AcceptanceRow, AttemptRow } from '../../journal/acceptances.ts'
import type { Context } from '../context.ts'
import type { AcceptanceProtocol } from '../../../protocol/model/acceptance.ts'
import { reportText, type Firmware } from './report.ts'
import { stepsOf, type AcceptanceStep } from './steps.ts'

const partsOf = ({ parts }: AcceptanceRow): string[] | null =>
  parts === null ? null : (JSON.parse(parts) as string[])

/** The steps of an acceptance that has not ended. */
export function stepsNow({ hardware }: Context, row: AcceptanceRow): AcceptanceStep[] {
  const parts = partsOf(row)
  return stepsOf(hardware).filter(({ part }) => parts?.includes(part) ?? true)
}

export const firmwareNow = ({ controllers }: Context): Firmware =>
  controllers.links().map(({ controller, firmware }) => ({ controller, firmware }))

/** The protocol of an acceptance; without an id of the open one, or else of the last. */
export function protocolOf(context: Context, id?: string): AcceptanceProtocol | null {
  const { acceptances } = context.journal
  const row = id === undefined ? (acceptances.open() ?? acceptances.list()[0]) : acceptances.find(id)
  if (!row) return null
  const attempts = acceptances.attempts(row.id)
  const attemptsOf = (step: string) =>
    attempts
      .filter((attempt) => attempt.step === step)
      .map(({ observed, agrees, verdict, remark, at }) => ({
        observed,
        agrees: agrees === 1,
        verdict,
        remark,
        at,
      }))
  const steps = row.ended_at === null ? stepsNow(context, row) : stepsOfEnded(attempts)
  const firmware = row.firmware === null ? firmwareNow(context) : (JSON.parse(row.firmware) as Firmware)
  const { by, software, begun_at, ended_at, result } = row
  return {
    id: row.id,
    by,
    parts: partsOf(row),
    software,
    firmware: [...firmware],
    begun_at,
    ended_at,
    result,
    steps: steps.map(({ id: step, part, title, does, expected, button, moves }) => ({
      id: step,
      part,
      title,
      does,
      expected,
      button,
      moves,
      attempts: attemptsOf(step),
    })),
  }
}

/** The steps as they were when the acceptance ended: the hardware may be described otherwise by now. */
function stepsOfEnded(attempts: readonly AttemptRow[]): Omit<AcceptanceStep, 'check'>[] {
  const steps = new Map(attempts.map((attempt) => [attempt.step, attempt]))
  return [...steps.values()]
    .toSorted((a, b) => a.position - b.position)
    .map(({ step: id, part, title, expected }) => ({
      id,
      part,
      title,
      expected,
      does: '',
      button: '',
      moves: false,
    }))
}

/** Reports an acceptance that has ended, in the transaction under way. The cloud takes it once, by its id. */
export function reportAcceptance({ journal, hardware, ledger }: Context, id: string): void {
  const row = journal.acceptances.find(id)
  if (!row || row.ended_at === null || row.result === null) return
  const attempts = journal.acceptances.attempts(id)
  const firmware = JSON.parse(row.firmware ?? '[]') as Firmware
  ledger.report({
    kind: 'maintenance.report',
    report_id: id,
    name:
      row.parts === null
        ? `Acceptance of hub ${hardware.hubId}`
        : `Acceptance of parts of hub ${hardware.hubId}`,
    submitted_by: row.by,
    service_type: 'Commissioning',
    started_at: row.begun_at,
    ended_at: row.ended_at,
    hub_tested: row.result,
    description: reportText(row, firmware, attempts),
    components_serviced: [...new Set(attempts.map(({ part }) => part))].slice(0, 100),
  })
}
