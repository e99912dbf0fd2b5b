import type { Call, Failure, Result } from './types.ts'

const ORDER = '/users/{user_id}/orders/{order_id}'
export const CANCELLED = 70

type AnyCall = (endpoint: string, input: Call) => Promise<Result<unknown>>

/** Whether an earlier try has executed a deletion that is refused now. The answer of the earlier try is lost. */
export async function isDeleted(
  endpoint: string,
  { params = {}, signal }: Call,
  { status, code }: Failure,
  call: AnyCall,
): Promise<boolean> {
  if (status === 404) return code !== 'unreadable_answer' && endpoint.startsWith('DELETE ')
  // A cancelled order stays, and the service refuses a second cancellation.
  if (endpoint !== `DELETE ${ORDER}` || code !== 'order_not_deletable') return false
  const order = await call(`GET ${ORDER}`, { params, ...(signal && { signal }) })
  return order.ok && (order.data as { processing_status: number }).processing_status === CANCELLED
}

/** The answer to such a deletion. It has the fields of the answers of all deletions. */
export const deleted = ({ params }: Call): Result<unknown> => ({
  ok: true,
  data: { success: true, deleted: true, message: 'An earlier try has done this.', ...params },
  status: 200,
  headers: new Headers(),
})
