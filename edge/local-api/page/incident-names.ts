import { rowSubject, subjectWithProduct } from '../../../protocol/model/subject.ts'
import type { LocalState } from './local-state.ts'

/** A row with its product: `row 1/2/3 (Cola)`. Other subjects stay unchanged. */
export function nameOf({ stock }: Pick<LocalState, 'stock'>, subject: string): string {
  const held = stock.find(({ location }) => rowSubject(location) === subject)
  return held?.name == null ? subject : subjectWithProduct(subject, held.name)
}

/**
 * Whether an operation of unknown outcome blocks the row. Then the operation's card is shown instead of the
 * alarm, so that the person is asked once.
 */
export const isAsked = (
  { unknown_operations }: Pick<LocalState, 'unknown_operations'>,
  { code, subject }: Pick<LocalState['alarms'][number], 'code' | 'subject'>,
): boolean =>
  code === 'row_blocked' &&
  unknown_operations.some(({ location }) => location !== null && rowSubject(location) === subject)
