import { config } from 'zod'

// Imported before any schema is created. Otherwise Zod would compile a function for each schema at its first
// use. That costs megabytes on a small board, for lines and messages that come a few times a second.
config({ jitless: true })
