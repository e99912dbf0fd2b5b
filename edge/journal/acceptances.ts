import type { AcceptanceResult } from '../../protocol/model/acceptance.ts'
import { all, one, run } from './statements.ts'
import type { Store } from './store.ts'

/** A guided acceptance of the hub, or of parts of it. Instants are cloud time, milliseconds. */
export interface AcceptanceRow {
  number: number
  id: string
  /** Who did it, by his own word. */
  by: string
  /** JSON: the parts that it is of; null for the whole hub. */
  parts: string | null
  /** JSON: the steps that are left out, those of rows without a product. */
  left_out: string
  software: string
  /** JSON: of each controller, when it ended. */
  firmware: string | null
  begun_at: number
  ended_at: number | null
  result: AcceptanceResult | null
}

/** One carrying out of a step; the last one of a step counts. */
export interface AttemptRow {
  number: number
  acceptance_id: string
  step: string
  /** Of the step among all of them. */
  position: number
  part: string
  title: string
  expected: string
  observed: string
  /** Whether the hub saw what was expected. */
  agrees: 0 | 1
  verdict: 'passed' | 'failed' | null
  remark: string
  at: number
}

export type Acceptances = ReturnType<typeof createAcceptances>

export function createAcceptances({ db }: Store) {
  return {
    begin: run(
      db.prepare<[Pick<AcceptanceRow, 'id' | 'by' | 'parts' | 'left_out' | 'software' | 'begun_at'>]>(
        `INSERT INTO acceptances (id, by, parts, left_out, software, begun_at)
         VALUES (@id, @by, @parts, @left_out, @software, @begun_at)`,
      ),
    ),
    /** The one that has not ended; there is one at most. */
    open: one(db.prepare<[], AcceptanceRow>('SELECT * FROM acceptances WHERE ended_at IS NULL')),
    find: one(db.prepare<[id: string], AcceptanceRow>('SELECT * FROM acceptances WHERE id = ?')),
    /** The newest first. */
    list: all(db.prepare<[], AcceptanceRow>('SELECT * FROM acceptances ORDER BY number DESC')),
    end: run(
      db.prepare<[Pick<AcceptanceRow, 'id' | 'result' | 'firmware' | 'ended_at'>]>(
        'UPDATE acceptances SET result = @result, firmware = @firmware, ended_at = @ended_at WHERE id = @id',
      ),
    ),
    add: run(
      db.prepare<[Omit<AttemptRow, 'number' | 'verdict' | 'remark'>]>(
        `INSERT INTO acceptance_attempts (acceptance_id, step, position, part, title, expected, observed, agrees, remark, at)
         VALUES (@acceptance_id, @step, @position, @part, @title, @expected, @observed, @agrees, '', @at)`,
      ),
    ),
    /** In the order in which they were made. Of one that has ended they are the whole protocol: a step that was left out has one. */
    attempts: all(
      db.prepare<[id: string], AttemptRow>(
        'SELECT * FROM acceptance_attempts WHERE acceptance_id = ? ORDER BY number',
      ),
    ),
    decide: run(
      db.prepare<[verdict: 'passed' | 'failed', remark: string, number: number]>(
        'UPDATE acceptance_attempts SET verdict = ?, remark = ? WHERE number = ?',
      ),
    ),
    /** Deletes all but the newest. */
    prune: run(
      db.prepare<[kept: number]>(
        `DELETE FROM acceptances WHERE ended_at IS NOT NULL
         AND number <= (SELECT max(number) FROM acceptances) - ?`,
      ),
    ),
  }
}
