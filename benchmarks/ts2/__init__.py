"""T2IScoreScore (TS2): do metrics order the images of a semantic error graph by error count?"""
