/** The names and sentences of the demo's people. Everything is made up. */

export const firstNames: readonly string[] = [
  'Amina',
  'Bruno',
  'Chiara',
  'Dmitri',
  'Elif',
  'Femi',
  'Greta',
  'Hugo',
  'Ines',
  'Jonas',
  'Katya',
  'Liam',
  'Mei',
  'Noor',
  'Olga',
  'Pedro',
  'Quentin',
  'Rosa',
  'Sami',
  'Tomás',
]

export const lastNames: readonly string[] = [
  'Abara',
  'Becker',
  'Conti',
  'Duarte',
  'Eriksen',
  'Fischer',
  'García',
  'Hadid',
  'Ivanova',
  'Jansen',
  'Kowalska',
  'Lindgren',
  'Moreau',
  'Nakamura',
  'Okafor',
  'Petrov',
  'Rossi',
]

interface Line {
  /** Written by the account. */
  readonly ours?: true
  readonly text: string
}

export const conversations: readonly (readonly Line[])[] = [
  [
    { ours: true, text: 'Hi! You asked about our team plan on the website. Shall I send you the details?' },
    { text: 'Yes please. We are eight people, mostly support.' },
    { ours: true, text: 'For eight the team plan fits well. It includes the API and unlimited chats.' },
    { text: 'And if we grow to fifteen next year?' },
    { ours: true, text: 'Same plan, you only add seats. Nothing to migrate.' },
    { text: 'Good. Can you put that into a proposal?' },
    { ours: true, text: 'You will have it by tomorrow noon.' },
  ],
  [
    { text: 'Hello, our export has been stuck at 80 % since this morning.' },
    { ours: true, text: 'Sorry about that. Which workspace is it, and roughly how many rows?' },
    { text: 'The one called "Nordic", about 40,000.' },
    { ours: true, text: 'Thanks. I restarted it and it is past 80 % now. I will keep an eye on it.' },
    { text: 'It just finished. Thank you for the quick help!' },
    { ours: true, text: 'Glad to hear it. Write any time.' },
  ],
  [
    { ours: true, text: 'Good morning! A quick question: are you still using spreadsheets for follow-ups?' },
    { text: 'We are, and it is a mess.' },
    {
      ours: true,
      text: 'Would a fifteen-minute call on Thursday help? I can show you how others left them behind.',
    },
    { text: 'Thursday at ten works for me.' },
    { ours: true, text: 'Booked. Talk to you then.' },
    { text: 'Looking forward to it.' },
  ],
  [
    { text: 'Добрый день! Есть ли у вас скидка для некоммерческих организаций?' },
    {
      ours: true,
      text: 'Здравствуйте! Да, 40 % на любой план. Пришлите, пожалуйста, подтверждение статуса.',
    },
    { text: 'Отлично, отправлю сегодня вечером.' },
    { ours: true, text: 'Спасибо, буду ждать.' },
  ],
  [
    { ours: true, text: 'Hola, ¿pudiste revisar la propuesta que te mandé el lunes?' },
    { text: 'Todavía no, esta semana está complicada.' },
    { ours: true, text: 'Sin problema. ¿Te escribo el próximo martes?' },
    { text: 'Perfecto, gracias por la paciencia.' },
  ],
  [
    { text: 'Can I change the billing address myself or do you do it?' },
    { ours: true, text: 'You can: Settings, then Billing. The next invoice picks it up.' },
    { text: 'Found it. That was easy.' },
  ],
  [
    { text: 'Who do I talk to about a security questionnaire? Ours has 120 questions…' },
    { ours: true, text: 'That would be me. Send it over; we usually answer within three working days.' },
    { text: 'Wonderful. Our legal team will be pleased.' },
    { ours: true, text: 'Half of it is answered in our public documentation already, I will link it.' },
    { text: 'Perfect, thank you.' },
  ],
]

/** The conversation that the reference's examples read, search and answer. */
export const exampleConversation: readonly Line[] = [
  { text: 'Hello! I saw two lamps in your window yesterday, a green one and a blue one.' },
  { ours: true, text: 'Good eye, they came in on Monday. Which of them do you like better?' },
  { text: 'Is the blue one still available?' },
]

export const news: readonly string[] = [
  'Quick question: does the price include onboarding?',
  'We talked about it internally and we like it. What are the next steps?',
  'Sorry for the late answer, I was travelling.',
  'Could you send the invoice again? I cannot find it.',
  'It works now, thanks!',
  'Is there a way to invite a colleague as read-only?',
  'Our budget meeting moved to next week, can we talk after that?',
  'Which of the two accounts should I write to for support?',
  'Мы решили подключить ещё двух сотрудников.',
  '¿Tienen una guía en español?',
]
