import type { Store } from './store.ts'

export interface BinRow {
  number: number
  order_id: number | null
  opened: 0 | 1
  failures: number
  /** `<action>:<why>` of the motion that failed last, while the same motion has not succeeded since. */
  fault: string | null
}

/** What the hub remembers of its bins; where their doors and lifts stand the controllers say. */
export interface Bins {
  all(): BinRow[]
  hold(bin: number, orderId: number): void
  release(bin: number): void
  releaseAll(): void
  setOpened(bin: number, opened: boolean): void
  setFault(bin: number, failures: number, fault: string | null): void
}

export function createBins({ db }: Store, numbers: number[]): Bins {
  const statements = {
    add: db.prepare<[number]>('INSERT INTO bins (number) VALUES (?) ON CONFLICT DO NOTHING'),
    all: db.prepare<[], BinRow>('SELECT * FROM bins ORDER BY number'),
    hold: db.prepare<[number, number]>('UPDATE bins SET order_id = ?, opened = 0 WHERE number = ?'),
    release: db.prepare<[number]>('UPDATE bins SET order_id = NULL, opened = 0 WHERE number = ?'),
    releaseAll: db.prepare<[]>('UPDATE bins SET order_id = NULL, opened = 0'),
    setOpened: db.prepare<[0 | 1, number]>('UPDATE bins SET opened = ? WHERE number = ?'),
    setFault: db.prepare<[number, string | null, number]>(
      'UPDATE bins SET failures = ?, fault = ? WHERE number = ?',
    ),
  }
  for (const number of numbers) statements.add.run(number)
  return {
    all: () => statements.all.all().filter((bin) => numbers.includes(bin.number)),
    hold: (bin, orderId) => void statements.hold.run(orderId, bin),
    release: (bin) => void statements.release.run(bin),
    releaseAll: () => void statements.releaseAll.run(),
    setOpened: (bin, opened) => void statements.setOpened.run(opened ? 1 : 0, bin),
    setFault: (bin, failures, fault) => void statements.setFault.run(failures, fault, bin),
  }
}
