import type { Context } from './context.ts'

/** Raises or lowers an alarm; it is reported when it changes, and not again after a restart. */
export function setAlarm(
  { journal, ledger, log }: Pick<Context, 'journal' | 'ledger' | 'log'>,
  code: string,
  device: string,
  raised: boolean,
  detail: string,
): void {
  if (!journal.alarms.set(code, device, raised)) return
  if (raised) log.warn({ code, device, detail }, 'alarm')
  else log.info({ code, device }, 'alarm over')
  ledger.report({ kind: 'alarm', code, device, raised, detail })
}
