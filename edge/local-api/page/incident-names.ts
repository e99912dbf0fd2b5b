import { rowSubject, subjectWithProduct } from '../../../protocol/model/subject.ts'
import type { LocalState } from './local-state.ts'

/** A row with the product in it: `row 1/2/3 (Cola)`. Other subjects stay as they are. */
export function nameOf({ stock }: Pick<LocalState, 'stock'>, subject: string): string {
  const held = stock.find(({ location }) => rowSubject(location) === subject)
  return held?.name == null ? subject : subjectWithProduct(subject, held.name)
}

/** Whether an operation of unknown outcome is what blocks the row: then the person is asked about that, once. */
export const isAsked = (
  { unknown_operations }: Pick<LocalState, 'unknown_operations'>,
  { code, subject }: Pick<LocalState['alarms'][number], 'code' | 'subject'>,
): boolean =>
  code === 'row_blocked' &&
  unknown_operations.some(({ location }) => location !== null && rowSubject(location) === subject)
