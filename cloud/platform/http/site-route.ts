import type { Rate } from '../../../protocol/contract/route.ts'
import type { Answer, Call } from './answer.ts'

/**
 * A route for the service's own pages: their files, sessions and sign-in. It is not part of the documented interface.
 */
export interface SiteRoute {
  method: 'GET' | 'POST' | 'PATCH' | 'DELETE'
  /** Hono's spelling: `/shop/:hub`; a last step `:path{.+}` takes the rest. */
  path: string
  /** Absent: no limit. Its answers carry no rate headers. */
  rate?: Rate
  /** Renders an error answer for a person who has followed a link. Absent: JSON. */
  failed?: (call: Call, answer: Answer<string>) => Answer<string>
  /** Refuses unknown names in `Host` and other origins in `Origin`. */
  trustsCaller?: true
  /** `readBody`: the text of the body, bounded in size and time. */
  serve: (
    call: Call,
    readBody: () => Promise<string>,
  ) => Promise<Answer<string | Uint8Array<ArrayBuffer> | null>>
}
