import type { Mutant } from './mutants.ts'

/** The safeguards without which the swarm must not stay green. */
export const mutants: readonly Mutant[] = [
  {
    name: 'receiver without deduplication',
    patches: [
      {
        file: 'protocol/stream/receiver.ts',
        find: "if (last <= cursor) return { kind: 'duplicate' }",
        replace: '',
      },
      { file: 'protocol/stream/receiver.ts', find: 'skip: cursor + 1 - batch.first,', replace: 'skip: 0,' },
    ],
  },
  {
    name: 'deletion on PUBACK',
    patches: [
      {
        file: 'edge/sync/stream-sender.ts',
        find: "      checkpoint('sync.after-send')\n",
        replace: "      checkpoint('sync.after-send')\n      outbox.forget(stream, batch.last)\n",
      },
    ],
  },
  {
    name: 'retry of an unknown operation',
    patches: [
      {
        file: 'edge/core/operations/reconciliation.ts',
        find: "failed: ({ moved, drops }) => (drops > 0 ? 'done' : moved ? 'unknown' : 'nothing'),",
        replace: "failed: ({ drops }) => (drops > 0 ? 'done' : 'nothing'),",
      },
      {
        file: 'edge/core/operations/reconciliation.ts',
        find: "interrupted: ({ moved, drops }) => (drops > 0 ? 'done' : moved ? 'unknown' : 'nothing'),",
        replace: "interrupted: ({ drops }) => (drops > 0 ? 'done' : 'nothing'),",
      },
    ],
  },
  {
    name: 'no session fence',
    patches: [
      {
        file: 'edge/sync/fence.ts',
        find: "if (command.session !== session) return 'stale_session'",
        replace: '',
      },
    ],
  },
  {
    name: 'intent journaled after the write',
    patches: [
      {
        file: 'edge/core/operations/intend.ts',
        find: 'store.afterCommit(() => send(context, request))',
        replace: 'send(context, request)',
      },
    ],
  },
]
