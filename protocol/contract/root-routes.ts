import { z } from 'zod'
import { Timestamp } from './fields.ts'
import { defineRoutes } from './route.ts'

/** Contract §1, §11, §12. */
export const rootRoutes = defineRoutes({
  'root.index': {
    method: 'GET',
    path: '/',
    interface: 'consumer',
    auth: { kind: 'none' },
    rate: 'open',
    response: z.object({
      service: z.string(),
      version: z.string(),
      status: z.literal('ok'),
      time: Timestamp,
    }),
    tag: 'Service',
    summary: 'Name, version and time of the service',
  },
  'root.openapi': {
    method: 'GET',
    path: '/openapi.json',
    interface: 'root',
    auth: { kind: 'none' },
    rate: 'open',
    response: z.record(z.string(), z.unknown()),
    tag: 'Service',
    summary: 'This interface as an OpenAPI 3.1 document',
  },
  'root.docs': {
    method: 'GET',
    path: '/docs',
    interface: 'root',
    auth: { kind: 'none' },
    rate: 'open',
    response: z.string(),
    produces: 'text/html',
    tag: 'Service',
    summary: 'This interface as a page to read',
  },
  'root.webhooks.payments': {
    method: 'POST',
    path: '/webhooks/payments',
    interface: 'root',
    auth: { kind: 'none' },
    rate: 'unlimited',
    rawBody: true,
    response: z.object({ received: z.literal(true) }),
    errors: ['invalid_signature', 'invalid_json'],
    tag: 'Payments',
    summary: "The card processor's events",
    description:
      'Signed: header `Payment-Signature: t=<unix seconds>,v1=<hex HMAC-SHA256 of "<t>.<body>">`, within 300 s; the header may as well be called `Stripe-Signature`. An event is applied once, by its id; a repeated one is answered as the first. Calls are not limited, and answers say nothing of a limit.',
  },
})
