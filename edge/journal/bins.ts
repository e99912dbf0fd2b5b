import { all, run, writer } from './statements.ts'
import type { Store } from './store.ts'

export interface BinRow {
  number: number
  order_id: string | null
  opened: 0 | 1
  failures: number
  /** `<action>:<why>` of a motion that failed, while none of the same part (door or lift) has succeeded since. */
  fault: string | null
  /** The hub tries by itself whether it moves again, and brings it home after that. */
  on_trial: 0 | 1
}

export type Bins = ReturnType<typeof createBins>

/** What the hub remembers of its bins, by number; where their doors and lifts stand the controllers say. */
export function createBins(store: Store, numbers: readonly number[]) {
  const { db } = store
  // A bin has no row before something is to be remembered of it: a start writes nothing, as a full disk has no room for it.
  const add = run(db.prepare<[bin: number]>('INSERT INTO bins (number) VALUES (?) ON CONFLICT DO NOTHING'))
  const rows = all(db.prepare<[], BinRow>('SELECT * FROM bins ORDER BY number'))
  const known = store.keep((): readonly BinRow[] => {
    const kept = rows()
    return numbers
      .toSorted((a, b) => a - b)
      .map((number) => kept.find((bin) => bin.number === number) ?? newBin(number))
  })
  const write = writer(known)
  const hold = write(
    db.prepare<[orderId: string, bin: number]>(
      'UPDATE bins SET order_id = ?, opened = 0, on_trial = 0 WHERE number = ?',
    ),
  )
  const setTrial = write(
    db.prepare<[onTrial: 0 | 1, bin: number]>('UPDATE bins SET on_trial = ? WHERE number = ?'),
  )
  const setOpened = write(db.prepare<[bin: number]>('UPDATE bins SET opened = 1 WHERE number = ?'))
  const setFault = write(
    db.prepare<[Pick<BinRow, 'number' | 'failures' | 'fault'>]>(
      'UPDATE bins SET failures = @failures, fault = @fault WHERE number = @number',
    ),
  )
  return {
    all: known.get,
    ofOrder: (orderId: string): BinRow[] => known.get().filter((bin) => bin.order_id === orderId),
    hold(bin: number, orderId: string): void {
      add(bin)
      hold(orderId, bin)
    },
    release: write(db.prepare<[bin: number]>('UPDATE bins SET order_id = NULL, opened = 0 WHERE number = ?')),
    releaseAll: write(db.prepare<[]>('UPDATE bins SET order_id = NULL, opened = 0')),
    setOpened(bin: number): void {
      add(bin)
      setOpened(bin)
    },
    setTrial(bin: number, isOnTrial: boolean): void {
      add(bin)
      setTrial(isOnTrial ? 1 : 0, bin)
    },
    setFault(fault: Pick<BinRow, 'number' | 'failures' | 'fault'>): void {
      add(fault.number)
      setFault(fault)
    },
  }
}

const newBin = (number: number): BinRow => ({
  number,
  order_id: null,
  opened: 0,
  failures: 0,
  fault: null,
  on_trial: 0,
})
