import { all, run } from './statements.ts'
import type { Store } from './store.ts'

export interface BinRow {
  number: number
  order_id: string | null
  opened: 0 | 1
  failures: number
  /** `<action>:<why>` of the motion that failed last, while the same motion has not succeeded since. */
  fault: string | null
}

export type Bins = ReturnType<typeof createBins>

/** What the hub remembers of its bins, by number; where their doors and lifts stand the controllers say. */
export function createBins({ db }: Store, numbers: readonly number[]) {
  const add = run(db.prepare<[bin: number]>('INSERT INTO bins (number) VALUES (?) ON CONFLICT DO NOTHING'))
  const rows = all(db.prepare<[], BinRow>('SELECT * FROM bins ORDER BY number'))
  const hold = run(
    db.prepare<[orderId: string, bin: number]>('UPDATE bins SET order_id = ?, opened = 0 WHERE number = ?'),
  )
  for (const number of numbers) add(number)
  const known = (): BinRow[] => rows().filter((bin) => numbers.includes(bin.number))
  return {
    all: known,
    ofOrder: (orderId: string): BinRow[] => known().filter((bin) => bin.order_id === orderId),
    hold: (bin: number, orderId: string) => hold(orderId, bin),
    release: run(db.prepare<[bin: number]>('UPDATE bins SET order_id = NULL, opened = 0 WHERE number = ?')),
    releaseAll: run(db.prepare<[]>('UPDATE bins SET order_id = NULL, opened = 0')),
    setOpened: run(db.prepare<[bin: number]>('UPDATE bins SET opened = 1 WHERE number = ?')),
    setFault: run(
      db.prepare<[Pick<BinRow, 'number' | 'failures' | 'fault'>]>(
        'UPDATE bins SET failures = @failures, fault = @fault WHERE number = @number',
      ),
    ),
  }
}
