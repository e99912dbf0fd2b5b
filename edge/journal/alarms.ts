import type { Store } from './store.ts'

/** Which alarms are raised, so that each is reported once, also across restarts. */
export interface Alarms {
  /** False where it was raised, or lowered, already. */
  set(code: string, device: string, raised: boolean): boolean
  isRaised(code: string, device: string): boolean
}

export function createAlarms({ db }: Store): Alarms {
  const raise = db.prepare<[string, string]>(
    'INSERT INTO alarms (code, device) VALUES (?, ?) ON CONFLICT DO NOTHING',
  )
  const lower = db.prepare<[string, string]>('DELETE FROM alarms WHERE code = ? AND device = ?')
  const find = db
    .prepare<[string, string], number>('SELECT 1 FROM alarms WHERE code = ? AND device = ?')
    .pluck()
  return {
    set: (code, device, raised) => (raised ? raise : lower).run(code, device).changes > 0,
    isRaised: (code, device) => find.get(code, device) !== undefined,
  }
}
