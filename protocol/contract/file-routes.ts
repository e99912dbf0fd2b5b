import { z } from 'zod'
import { defineRoutes } from './route.ts'

/** Contract §4. */
export const fileRoutes = defineRoutes({
  'root.files': {
    method: 'GET',
    path: '/files/{path}',
    openEnded: true,
    interface: 'root',
    auth: { kind: 'none' },
    // Whoever has an address was given it; a page full of images is no abuse.
    rate: 'unlimited',
    params: z.object({ path: z.string() }),
    query: z.object({
      /** Seconds since the Unix epoch. */
      expires: z.string().optional(),
      signature: z.string().optional(),
    }),
    response: z.instanceof(ReadableStream).nullable(),
    produces: 'application/octet-stream',
    errors: ['forbidden', 'not_found', 'range_not_satisfiable'],
    tag: 'Service',
    summary: 'An image or video, from its signed address',
    description:
      'The address comes with the object that the file belongs to, and expires. Takes `Range` (one range), `If-Range` and `If-None-Match`. Calls are not limited, and answers say nothing of a limit.',
  },
})
