/** A limited number of things in a process, or of one owner, outside of any `Budget`. */
interface OtherLimit {
  what: string
  /** Names of its settings; the total comes first. */
  settings: readonly string[]
  /** The rule that keeps one caller from using up the total. */
  share: string
}

/**
 * Every counting setting outside of the budgets (`cloud/platform/limits/budgets.ts`). A test finds each such
 * setting in one of the two lists, and cloud/README prints both.
 */
export const otherLimits: readonly OtherLimit[] = [
  {
    what: 'HTTP connections (`protocol/model/bound-server.ts`)',
    settings: ['HTTP_MAX_CONNECTIONS', 'HTTP_CONNECTIONS_PER_NETWORK', 'HTTP_REPLACED_PER_SECOND'],
    share: 'per network; beyond it an idle connection of the same network ends, else the one longest at work',
  },
  {
    what: 'new guests a minute',
    settings: ['GUESTS_PER_MINUTE'],
    share: 'per network; unused guests expire after `GUESTS_KEPT_DAYS`',
  },
  { what: 'sign-ins a minute', settings: ['SIGN_INS_PER_MINUTE'], share: 'per network' },
  { what: 'webhooks', settings: ['WEBHOOKS_PER_OWNER'], share: 'per owner' },
  { what: 'open invitations', settings: ['INVITATIONS_PER_OWNER'], share: 'per owner' },
  { what: 'valid API keys', settings: ['KEYS_PER_OWNER'], share: 'per owner' },
  { what: 'roles of people', settings: ['ROLES_PER_OWNER'], share: 'per owner' },
  {
    what: 'mails within 24 hours to addresses that have not agreed to them',
    settings: ['UNASKED_MAILS_PER_OWNER', 'UNASKED_MAILS_PER_ADDRESS'],
    share: 'per owner, and per address for all owners',
  },
  {
    what: 'open alarms',
    settings: ['ALARMS_PER_HUB'],
    share: 'per hub; alarms about sales are not bounded, and take no place',
  },
  {
    what: 'deliveries under way',
    settings: ['WEBHOOK_CONCURRENCY'],
    share: 'per webhook',
  },
  {
    what: 'unpaid orders, and units of each',
    settings: ['UNPAID_ORDERS_PER_USER', 'UNPAID_UNITS_PER_ORDER'],
    share: 'per user',
  },
  {
    what: 'units that unpaid orders of guests and of accounts without a verified contact reserve',
    settings: ['UNPAID_UNITS_PER_NETWORK'],
    share:
      'per network and hub, counted in the database; a first unpaid order is not bounded by it. The bound also refuses a card that would pay at once: an order reserves goods while the processor is asked, so a caller with many refused cards would hold them in turn. Customers with a verified contact are not bounded',
  },
  {
    what: 'devices that get notices',
    settings: ['PUSH_DEVICES'],
    share: 'per user; the one longest unheard goes',
  },
  {
    what: 'pace of an upload',
    settings: ['UPLOAD_BYTES_PER_SECOND'],
    share: 'per upload; a slower one ends after `UPLOAD_PATIENCE_MS`',
  },
  {
    what: 'structure of one picture or video',
    settings: ['IMAGE_PIXELS', 'MEDIA_PARTS'],
    share: 'per file; the processor time of all files is the budget `mediaTime`',
  },
  { what: 'names that one order search reads', settings: ['ORDER_SEARCH_NAMES'], share: 'per call' },
  {
    what: 'identity tokens, search totals, file addresses and events kept in memory',
    settings: ['IDENTITY_TOKENS', 'SEARCH_TOTALS_KEPT', 'FILE_ADDRESSES_KEPT', 'EVENTS_IN_MEMORY'],
    share: 'caches: a caller who fills them slows others down, and nobody is refused',
  },
  {
    what: 'hubs greeted at the same time',
    settings: ['GATEWAY_GREET_AT_ONCE', 'GATEWAY_GREET_AT_LEAST', 'GATEWAY_GREET_TRANSACTIONS'],
    share: 'one place per hub; its next hello waits for the answer',
  },
  {
    what: 'certificates of hubs that are signed at the same time',
    settings: ['HUB_CERTIFICATES_AT_ONCE'],
    share: 'one place per hub',
  },
  {
    what: 'messages of a hub that enter',
    settings: [
      'GATEWAY_MESSAGES_AT_ONCE',
      'GATEWAY_MESSAGES_PER_MINUTE',
      'GATEWAY_MESSAGE_BYTES_AT_ONCE',
      'GATEWAY_MESSAGE_BYTES_PER_MINUTE',
    ],
    share:
      'per hub, over all its connections; the embedded broker reads further ones later, and those through an external broker are dropped and sent again',
  },
  {
    what: 'entries of a hub that are applied',
    settings: [
      'GATEWAY_ENTRIES_AT_ONCE',
      'GATEWAY_ENTRIES_PER_MINUTE',
      'GATEWAY_ENTRY_BYTES_AT_ONCE',
      'GATEWAY_ENTRY_BYTES_PER_MINUTE',
    ],
    share: 'per hub and stream; the hub keeps the others and sends them again',
  },
  {
    what: 'epochs that the streams of a hub begin, which are rows of the database',
    settings: ['GATEWAY_EPOCHS_AT_ONCE', 'GATEWAY_EPOCHS_PER_HOUR'],
    share: 'per hub; further hellos with another epoch have no answer until then',
  },
  {
    what: 'dead letters above 4,096 characters, and the characters of one',
    settings: ['GATEWAY_LARGE_DEAD_LETTERS', 'GATEWAY_DEAD_LETTER_BYTES'],
    share: 'per hub; further ones are stored with their beginning and length, and the stream continues',
  },
  {
    what: 'messages and bytes on their way to or from a hub',
    settings: [
      'GATEWAY_MAILBOX',
      'GATEWAY_BATCH_BYTES',
      'GATEWAY_BATCH_ENTRIES',
      'GATEWAY_WINDOW_BYTES',
      'GATEWAY_MAX_WINDOW_BYTES',
    ],
    share: 'per hub',
  },
  {
    what: 'due work at the same time',
    settings: ['WORK_CONCURRENCY', 'WORK_BATCH'],
    share: 'per kind of work',
  },
  {
    what: 'connections to PostgreSQL',
    settings: [
      'DATABASE_READ_CONNECTIONS',
      'DATABASE_WRITE_CONNECTIONS',
      'DATABASE_GATEWAY_CONNECTIONS',
      'DATABASE_BACKGROUND_CONNECTIONS',
    ],
    share: 'per use; a statement ends after `DATABASE_…_STATEMENT_MS`, calls a minute are per credential',
  },
]

/** Numbers that no caller can use up: sizes of batches, lengths of lists, thresholds. */
export const notLimits: readonly string[] = [
  'CELL',
  'TRUSTED_PROXIES',
  'PROCESSOR_CHECK_BATCH',
  'LOST_ORDER_NUMBERS',
  'REFUND_RETRIES',
  'LOYALTY_CENTS_PER_POINT',
  'TOP_PRODUCTS',
  'RETENTION_BATCH',
  'EVENT_BATCH',
  'LOW_STOCK',
  'WORK_ALARM_ATTEMPTS',
  'GATEWAY_SILENT_BEATS',
  'GATEWAY_STALL_TRIES',
]
